"""How Snip looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Text
from retinue.tools.system.snip.tool import SnipInput, SnipOutput


class Render(Renderer[SnipInput, SnipOutput]):
    def use(self, args: SnipInput) -> Blocks:
        return (Heading("Snip", f"exchanges {args.oldest} to {args.newest} back"), Text(args.note, "dim"))

    def result(self, args: SnipInput, data: SnipOutput) -> Blocks:
        return (*self.use(args), Line(f"about {data.freed_tokens:,} tokens freed", "dim"))
