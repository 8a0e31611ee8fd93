"""How the other agents look in a list."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Table
from retinue.tools.team.list_peers.tool import ListPeersInput, ListPeersOutput
from retinue.tools.text import counted


class Render(Renderer[ListPeersInput, ListPeersOutput]):
    def use(self, args: ListPeersInput) -> Blocks:
        return (Heading("Peers"),)

    def result(self, args: ListPeersInput, data: ListPeersOutput) -> Blocks:
        if not data.peers:
            return (Line("nobody else", "dim"),)
        rows = tuple((peer.name, peer.kind, peer.state, peer.detail or peer.description) for peer in data.peers)
        return (Heading("Peers", str(len(rows))), Table(("name", "kind", "state", "about"), rows))

    def grouped(self, calls: Sequence[ListPeersInput]) -> Blocks:
        return (Heading("Peers", f"looked at {counted(len(calls), 'time')}"),)
