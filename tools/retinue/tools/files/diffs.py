"""What changed in a file, as lines for a viewer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.tools.files.hunks import Hunk
from retinue.tools.render.blocks import Diff, DiffLine, Mark, cut_diff

_MARKS: dict[str, Mark] = {"+": "+", "-": "-"}


def diff_of(hunks: Iterable[Hunk], path: str) -> Diff:
    """Removed lines with their number in the old file, all others with that in the new one."""
    known = tuple(hunks)
    cut = cut_diff((_numbered(hunk) for hunk in known), path)
    return Diff(cut.hunks, path, cut.more + sum(hunk.more for hunk in known))


def _numbered(hunk: Hunk) -> list[DiffLine]:
    old, new = hunk.old_start, hunk.new_start
    lines: list[DiffLine] = []
    for line in hunk.lines:
        mark = _MARKS.get(line[:1], " ")
        lines.append(DiffLine(mark, old if mark == "-" else new, line[1:]))
        old += mark != "+"
        new += mark != "-"
    return lines
