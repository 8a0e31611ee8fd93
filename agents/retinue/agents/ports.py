"""What an agent asks of its surroundings. Implemented in one process for tests, and over actors."""

from __future__ import annotations

from typing import Protocol

from retinue.agents.boot import AgentStatus
from retinue.agents.model.messages import Usage, Wire
from retinue.agents.records import AgentRecord


class LedgerPort(Protocol):
    async def append(self, *records: AgentRecord) -> None:
        """In the order given; readable at once, durable after the next `sync`. EnvironmentProblem: disk full."""
        ...

    async def sync(self) -> None:
        """All that was appended so far is on disk when this returns."""
        ...


class Reservation(Wire):
    """May the next request be made? `text` says why not, and what would change it."""

    ok: bool
    text: str = ""


class BudgetPort(Protocol):
    async def reserve(self, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        """One question per request: what the last one used, and whether `tokens` more are there. Fails closed."""
        ...

    async def reserve_side(self, key: str, model: str, tokens: int) -> Reservation:
        """The same for a request beside the conversation. `key` is its own within the agent."""
        ...

    async def settle_side(self, key: str, model: str, used: Usage) -> None:
        """What that request used, and that it is over."""
        ...


class StatusPort(Protocol):
    def report(self, status: AgentStatus) -> None:
        """Fire and forget; the newest wins."""
        ...


class CheckpointPort(Protocol):
    async def checkpoint(self) -> str | None:
        """Snapshot of the workspace, None when nothing changed or the workspace has none."""
        ...
