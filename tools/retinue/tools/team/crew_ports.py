"""What the tools for whole teams ask of their surroundings: who else there is, and teams that come and go."""

from __future__ import annotations

from typing import Literal, Protocol

from retinue.tools.ports import PortModel


class PeerView(PortModel):
    """`state` is what its process said last; `gone` for one that has ended."""

    name: str
    kind: Literal["lead", "teammate", "sub-agent", "run"]
    state: str
    description: str = ""
    detail: str = ""


class PeersPort(Protocol):
    async def peers(self) -> tuple[PeerView, ...]:
        """Everybody whom this agent can know of, itself left out."""
        ...


class TeamDraft(PortModel):
    name: str
    description: str = ""
    agent_type: str = ""


class TeamMade(PortModel):
    """`lead` is the id of the agent that leads it."""

    name: str
    file: str
    lead: str


class TeamAdminPort(Protocol):
    """Teams that an agent makes and ends."""

    async def create(self, key: str, draft: TeamDraft) -> TeamMade:
        """ToolError: it leads a team already, or there is one of that name."""
        ...

    async def delete(self, key: str) -> str:
        """The name of the team that is no more. ToolError: it leads none, or members are still active."""
        ...
