"""How Read looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.files.read.tool import ReadInput, ReadOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.render.words import several
from retinue.tools.text import counted


class Render(Renderer[ReadInput, ReadOutput]):
    def use(self, args: ReadInput) -> Blocks:
        return (Heading("Read", args.file_path),)

    def result(self, args: ReadInput, data: ReadOutput) -> Blocks:
        return (Line(_found(data), "dim"),)

    def grouped(self, calls: Sequence[ReadInput]) -> Blocks:
        return (Heading("Read", several((call.file_path for call in calls), "file")),)


def _found(data: ReadOutput) -> str:
    match data.kind:
        case "text" | "notebook":
            what = "line" if data.kind == "text" else "cell"
            of = f" of {data.total_lines}" if data.total_lines not in (None, data.num_lines) else ""
            return f"{counted(data.num_lines, what)}{of}"
        case "image" | "pdf":
            return data.note or data.kind
        case "unchanged":
            return "unchanged since it was read"
