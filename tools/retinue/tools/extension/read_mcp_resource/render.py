"""How ReadMcpResource looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.extension.read_mcp_resource.tool import ReadMcpResourceInput, ReadMcpResourceOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Output
from retinue.tools.text import counted


class Render(Renderer[ReadMcpResourceInput, ReadMcpResourceOutput]):
    def use(self, args: ReadMcpResourceInput) -> Blocks:
        return (Heading("Read resource", f"{args.uri} of {args.server}"),)

    def result(self, args: ReadMcpResourceInput, data: ReadMcpResourceOutput) -> Blocks:
        return (Output(self.tool.to_content(data)),)

    def grouped(self, calls: Sequence[ReadMcpResourceInput]) -> Blocks:
        return (Heading("Read", f"{counted(len(calls), 'resource')}: {', '.join(call.uri for call in calls)}"),)
