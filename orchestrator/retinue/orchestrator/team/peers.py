"""Who else there is, as one agent of a team may know it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from retinue.agents.boot import AgentStatus
from retinue.orchestrator.team.state import MemberState
from retinue.tools.team.crew_ports import PeerView

_STARTING = "starting"


def peers_of(
    asks: str, members: Iterable[MemberState], status_of: Callable[[str], AgentStatus | None]
) -> tuple[PeerView, ...]:
    """Lead and teammates, and the sub-agents of who asks; those that have ended are not there any more."""
    return tuple(
        _view(member, status_of(member.boot.agent))
        for member in members
        if member.ended is None
        and member.boot.agent != asks
        and (member.boot.role != "child" or member.boot.parent == asks)
    )


def _view(member: MemberState, status: AgentStatus | None) -> PeerView:
    boot = member.boot
    return PeerView(
        name=boot.name,
        kind="sub-agent" if boot.role == "child" else boot.role,
        state=status.state if status is not None else _STARTING,
        description=boot.description,
        detail=status.detail if status is not None else "",
    )
