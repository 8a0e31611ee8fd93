"""What crosses between an agent and the scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.agents.model.messages import Wire
from retinue.orchestrator.scheduling.leases import LeaseView, Mode


class LeaseAsk(Wire):
    id: str
    holder: str
    wants: dict[str, Mode]
    what: str
    wait_s: float


class LeaseLine(Wire):
    id: str
    holder: str
    what: str
    workspaces: tuple[str, ...]
    mode: Mode
    granted: bool
    since: float
    behind: tuple[str, ...]


class LeaseLines(Wire):
    lines: tuple[LeaseLine, ...]

    @classmethod
    def of(cls, views: Sequence[LeaseView]) -> LeaseLines:
        return cls(
            lines=tuple(
                LeaseLine(
                    id=v.id,
                    holder=v.holder,
                    what=v.what,
                    workspaces=v.workspaces,
                    mode=v.mode,
                    granted=v.granted,
                    since=v.since,
                    behind=v.behind,
                )
                for v in views
            )
        )


def holder_of(run: str, agent: str, incarnation: int) -> str:
    """What dies together: one incarnation of one agent of one run."""
    return f"{run}/{agent}/{incarnation}"


def holder_parts(holder: str) -> tuple[str, str, int]:
    run, agent, incarnation = holder.rsplit("/", 2)
    return run, agent, int(incarnation)
