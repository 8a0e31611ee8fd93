"""How a call of an MCP server's tool looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.base import RawInput
from retinue.tools.mcp.tool import McpOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Output
from retinue.tools.text import counted


class Render(Renderer[RawInput, McpOutput]):
    def use(self, args: RawInput) -> Blocks:
        name, _, rest = self.tool.title(args).partition(" (")
        return (Heading(name, rest.removesuffix(")")),)

    def result(self, args: RawInput, data: McpOutput) -> Blocks:
        return (Output(self.tool.to_content(data)),)

    def grouped(self, calls: Sequence[RawInput]) -> Blocks:
        return (Heading(self.tool.user_facing_name(), counted(len(calls), "call")),)
