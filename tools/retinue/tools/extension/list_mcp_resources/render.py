"""How ListMcpResources looks."""

from __future__ import annotations

from retinue.tools.extension.list_mcp_resources.tool import ListMcpResourcesInput, ListMcpResourcesOutput, line
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.text import counted

_SHOWN = 20


class Render(Renderer[ListMcpResourcesInput, ListMcpResourcesOutput]):
    def use(self, args: ListMcpResourcesInput) -> Blocks:
        return (Heading("List resources", args.server or "of all MCP servers"),)

    def result(self, args: ListMcpResourcesInput, data: ListMcpResourcesOutput) -> Blocks:
        lines = tuple(Line(line(resource)) for resource in data.resources[:_SHOWN])
        return (*lines, Line(counted(data.total, "resource"), "dim"))
