"""How Grep looks: the lines that were found, file by file, with their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from retinue.tools.files.grep.tool import GrepInput, GrepOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Block, Blocks, Code, CodeLine, Heading, Line, Text
from retinue.tools.render.words import several
from retinue.tools.text import counted

_SHOWN_ENTRIES = 50
_NUMBERED = re.compile(r"(?P<path>.+?)(?P<mark>[:-])(?P<number>\d+)(?P=mark)(?P<text>.*)\Z", re.DOTALL)


class _Entry(NamedTuple):
    path: str
    line: CodeLine


class Render(Renderer[GrepInput, GrepOutput]):
    def use(self, args: GrepInput) -> Blocks:
        return (Heading("Grep", f"{args.pattern} in {args.path}" if args.path else args.pattern),)

    def result(self, args: GrepInput, data: GrepOutput) -> Blocks:
        if not data.any_match:
            return (Line("no matches", "dim"),)
        entries = data.entries[:_SHOWN_ENTRIES]
        left = len(data.entries) - len(entries)
        more = (Line(f"… {left} more" if left else "… more", "dim"),) if left or data.more else ()
        if data.mode == "content" and args.line_numbers:
            return (Line(counted(len(data.entries), "line"), "dim"), *_by_file(entries), *more)
        if data.mode == "content":
            return (Text("\n".join(entries)), *more)
        return (Line(counted(len(data.entries), "file"), "dim"), Text("\n".join(entries)), *more)

    def grouped(self, calls: Sequence[GrepInput]) -> Blocks:
        return (Heading("Grep", several((call.pattern for call in calls), "pattern")),)


def _by_file(entries: Sequence[str]) -> list[Block]:
    """Each file once, its lines below it; what is no numbered line stays as it is."""
    blocks: list[Block] = []
    for path, lines in groupby(map(_entry, entries), key=lambda entry: entry.path):
        blocks += [Line(path)] if path else []
        blocks.append(Code(tuple(entry.line for entry in lines), path))
    return blocks


def _entry(text: str) -> _Entry:
    """`path:12:text` is a hit, `path-12-text` stands around one."""
    found = _NUMBERED.match(text)
    if found is None:
        return _Entry("", CodeLine(None, text))
    return _Entry(found["path"], CodeLine(int(found["number"]), found["text"], hit=found["mark"] == ":"))
