"""How a change of a notebook looks: as a diff of the one cell."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.files.diffs import diff_of
from retinue.tools.files.hunks import hunks
from retinue.tools.files.notebook_edit.tool import NotebookEditInput, NotebookEditOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line


class Render(Renderer[NotebookEditInput, NotebookEditOutput]):
    def use(self, args: NotebookEditInput) -> Blocks:
        cell = f" ({args.edit_mode} {args.cell_id})" if args.cell_id else f" ({args.edit_mode})"
        return (Heading("NotebookEdit", f"{args.notebook_path}{cell}"),)

    def result(self, args: NotebookEditInput, data: NotebookEditOutput) -> Blocks:
        said = Line(f"{_DONE[data.edit_mode]} {data.cell_type} cell {data.cell_id}")
        path = "cell.md" if data.cell_type == "markdown" else "cell.py" if data.language == "python" else ""
        return (said, diff_of(hunks(data.old_source or "", data.new_source), path))

    def grouped(self, calls: Sequence[NotebookEditInput]) -> Blocks:
        books = {call.notebook_path for call in calls}
        return (Heading("NotebookEdit", f"{len(calls)} cells of {', '.join(sorted(books))}"),)


_DONE = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}
