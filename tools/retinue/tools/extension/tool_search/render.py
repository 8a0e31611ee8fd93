"""How ToolSearch looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.extension.tool_search.tool import ToolSearchInput, ToolSearchOutput, notes
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.text import counted, one_line


class Render(Renderer[ToolSearchInput, ToolSearchOutput]):
    def use(self, args: ToolSearchInput) -> Blocks:
        return (Heading("ToolSearch", one_line(args.query, 100)),)

    def result(self, args: ToolSearchInput, data: ToolSearchOutput) -> Blocks:
        found = (Line(f"{tool.name}  {one_line(tool.description, 80)}") for tool in data.found)
        said = (Line(line, "dim") for line in notes(data).splitlines())
        return (*found, *said)

    def grouped(self, calls: Sequence[ToolSearchInput]) -> Blocks:
        return (Heading("Searched", f"for tools {counted(len(calls), 'time')}"),)
