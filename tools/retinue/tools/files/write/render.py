"""How Write looks: a new file as what it holds, an overwritten one as what changed in it."""

from __future__ import annotations

from retinue.tools.files.diffs import diff_of
from retinue.tools.files.write.tool import WriteInput, WriteOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, code_of
from retinue.tools.text import counted


class Render(Renderer[WriteInput, WriteOutput]):
    def use(self, args: WriteInput) -> Blocks:
        return (Heading("Write", args.file_path),)

    def result(self, args: WriteInput, data: WriteOutput) -> Blocks:
        if data.created:
            return (Heading("Create", args.file_path), code_of(args.content, args.file_path))
        said = Line(counted(data.lines, "line"), "dim")
        return (Heading("Update", args.file_path), said, diff_of(data.hunks, args.file_path))
