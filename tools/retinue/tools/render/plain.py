"""Blocks as text, for pipes and logs. Whatever tools found is made harmless here. Pure."""

from __future__ import annotations

from typing import assert_never

from retinue.tools.render.blocks import Block, Blocks, Code, Diff, Heading, Line, Markdown, Output, Table, Text
from retinue.tools.text import counted, for_terminal, one_line

INDENT = "  "


def as_text(blocks: Blocks) -> str:
    """A heading at the margin, everything else below it."""
    lines: list[str] = []
    for block in blocks:
        margin = "" if isinstance(block, Heading) else INDENT
        lines += [f"{margin}{line}".rstrip() for line in _lines(block)]
    return "\n".join(lines)


def first_line(blocks: Blocks) -> str:
    """The heading alone, for lists."""
    return next((one_line(line) for block in blocks for line in _lines(block) if line.strip()), "")


def ending(block: Output) -> str:
    """How a program ended, in words; empty when there is nothing to say."""
    code = block.exit_code
    how = "" if code in (None, 0) else f"ended by signal {-code}" if code < 0 else f"exit code {code}"
    return ": ".join(part for part in (how, block.note) if part)


def _lines(block: Block) -> list[str]:
    match block:
        case Heading(name, detail):
            return [one_line(f"{name} {detail}".strip(), 1_000)]
        case Line(text):
            return [one_line(text, 1_000)]
        case Text(text) | Markdown(text):
            return for_terminal(text).splitlines()
        case Code():
            return _code(block)
        case Diff():
            return _diff(block)
        case Output(text):
            said = ending(block)
            return [*for_terminal(text).splitlines(), *([f"[{one_line(said)}]"] if said else [])]
        case Table(columns, rows):
            return ["\t".join(one_line(cell) for cell in row) for row in (columns, *rows)]
        case _:
            assert_never(block)


def _code(block: Code) -> list[str]:
    width = max((len(str(line.number)) for line in block.lines if line.number is not None), default=0)
    lines = [
        f"{'' if line.number is None else line.number:>{width}}{' ' if width else ''}{_source(line.text)}"
        for line in block.lines
    ]
    return [*lines, *_more(block.more)]


def _diff(block: Diff) -> list[str]:
    width = max((len(str(line.number)) for hunk in block.hunks for line in hunk), default=0)
    lines: list[str] = []
    for index, hunk in enumerate(block.hunks):
        lines += ["…"] if index else []
        lines += [f"{line.number:>{width}} {line.mark} {_source(line.text)}".rstrip() for line in hunk]
    return [*lines, *_more(block.more)]


def _more(count: int) -> list[str]:
    return [f"… {counted(count, 'more line')}"] if count else []


def _source(text: str) -> str:
    """One line of a file: its spaces stay."""
    return for_terminal(text).replace("\n", " ")
