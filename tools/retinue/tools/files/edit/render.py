"""How Edit looks: a diff with line numbers, a new file as what it holds, a miss as what was looked for."""

from __future__ import annotations

from retinue.tools.files.diffs import diff_of
from retinue.tools.files.edit.tool import EditInput, EditOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Code, CodeLine, Heading, Line, code_of
from retinue.tools.text import counted

_SOUGHT_LINES = 20


class Render(Renderer[EditInput, EditOutput]):
    def use(self, args: EditInput) -> Blocks:
        return (Heading("Update" if args.old_string else "Create", args.file_path),)

    def result(self, args: EditInput, data: EditOutput) -> Blocks:
        if data.created or not args.old_string:
            return (*self.use(args), code_of(args.new_string, args.file_path))
        said = f"{counted(data.added, 'line')} added, {counted(data.removed, 'line')} removed"
        return (*self.use(args), Line(said, "dim"), diff_of(data.hunks, args.file_path))

    def error(self, args: EditInput | None, text: str) -> Blocks:
        """The first line says what is wrong; below it stands the text that was looked for."""
        said = Line(text.partition("\n")[0], "bad")
        if args is None or not args.old_string:
            return (said,)
        sought = args.old_string.splitlines()
        lines = tuple(CodeLine(None, line) for line in sought[:_SOUGHT_LINES])
        return (said, Code(lines, args.file_path, more=max(0, len(sought) - _SOUGHT_LINES)))
