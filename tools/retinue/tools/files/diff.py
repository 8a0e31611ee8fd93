"""Hunks as the block that renderers show. Loaded by who renders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from retinue.tools.files.hunks import Hunk
from retinue.tools.render.blocks import Diff, DiffLine, Mark, cut_diff


def diff_of(found: Iterable[Hunk], path: str = "") -> Diff:
    """With the number of each line: in the new file, of a removed one in the old."""
    return cut_diff((_numbered(hunk) for hunk in found), path)


def _numbered(hunk: Hunk) -> Iterator[DiffLine]:
    old, new = hunk.old_start, hunk.new_start
    for line in hunk.lines:
        mark: Mark = "+" if line[0] == "+" else "-" if line[0] == "-" else " "
        yield DiffLine(mark, old if mark == "-" else new, line[1:])
        old += mark != "+"
        new += mark != "-"
