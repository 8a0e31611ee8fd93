"""ListPeers: who else there is, and how they stand."""

from __future__ import annotations

from retinue.tools.base import READS, Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.team.crew_ports import PeerView
from retinue.tools.team.ports import ALLOWED, connected
from retinue.tools.text import for_model, one_line


class ListPeersInput(ToolInput):
    """It takes nothing."""


class ListPeersOutput(ToolData):
    own: str
    peers: tuple[PeerView, ...]


class ListPeers(Tool[ListPeersInput, ListPeersOutput]):
    name = "ListPeers"
    group = "agents"
    needs = ("peers",)
    search_hint = "teammates agents who is there idle busy"
    should_defer = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "List the other agents, and how they stand"

    def traits(self, args: ListPeersInput) -> Traits:
        return READS

    def title(self, args: ListPeersInput) -> str:
        return "List peers"

    async def check_permissions(self, args: ListPeersInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(
        self, args: ListPeersInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ListPeersOutput]:
        peers = await connected(ctx.peers, "peers").peers()
        return ToolResult(ListPeersOutput(own=ctx.agent.partition("~")[0], peers=peers))

    def to_content(self, data: ListPeersOutput) -> str:
        lines = [f"You are {data.own}.", *map(_line, data.peers)]
        return "\n".join(lines if data.peers else [*lines, "There is nobody else."])


def _line(peer: PeerView) -> str:
    parts = [peer.name, peer.kind, peer.state, *(part for part in (peer.detail, peer.description) if part)]
    return for_model(" · ".join(one_line(part) for part in parts))
