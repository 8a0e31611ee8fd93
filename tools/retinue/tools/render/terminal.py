"""Blocks as rich renderables. No width is assumed: lines fold where the console ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text as RichText

from retinue.tools.render import blocks as b
from retinue.tools.render.plain import ending
from retinue.tools.text import counted, for_terminal, one_line

if TYPE_CHECKING:
    from rich.syntax import Syntax

_TONE: dict[b.Tone, str] = {"plain": "", "dim": "dim", "good": "green", "bad": "red", "warn": "yellow"}
_MARK: dict[b.Mark, str] = {" ": "dim", "+": "green", "-": "red"}
_HIGHLIGHTED_CHARS = 50_000
"""A longer text stays in one colour: to colour it would keep a viewer waiting."""


def renderable(blocks: b.Blocks) -> RenderableType:
    """A heading at the margin, everything else below it."""
    return Group(*(_placed(block) for block in blocks))


def _placed(block: b.Block) -> RenderableType:
    shown = _shown(block)
    return shown if isinstance(block, b.Heading) else Padding(shown, (0, 0, 0, 2))


def _shown(block: b.Block) -> RenderableType:
    match block:
        case b.Heading(name, detail):
            return RichText.assemble((one_line(name), "bold"), f" {one_line(detail, 1_000)}" if detail else "")
        case b.Line(text, tone):
            return RichText(one_line(text, 1_000), style=_TONE[tone])
        case b.Text(text, tone):
            return RichText(for_terminal(text), style=_TONE[tone])
        case b.Markdown(text):
            from rich.markdown import Markdown

            return Markdown(for_terminal(text), hyperlinks=False)
        case b.Code():
            return _code(block)
        case b.Diff():
            return _diff(block)
        case b.Output():
            return _output(block)
        case b.Table(columns, rows):
            return _table(columns, rows)
        case _:
            assert_never(block)


def _code(block: b.Code) -> RenderableType:
    width = max((len(str(line.number)) for line in block.lines if line.number is not None), default=0)
    numbers = ("" if line.number is None else str(line.number) for line in block.lines)
    texts = _highlighted([line.text for line in block.lines], block.path)
    lines = [
        RichText.assemble((f"{number:>{width}} ", "dim"), _marked(text, hit=line.hit)) if width else text
        for number, text, line in zip(numbers, texts, block.lines, strict=True)
    ]
    return _stack(lines, block.more)


def _diff(block: b.Diff) -> RenderableType:
    width = max((len(str(line.number)) for hunk in block.hunks for line in hunk), default=0)
    lines: list[RichText] = []
    for index, hunk in enumerate(block.hunks):
        if index:
            lines.append(RichText("…", style="dim"))
        for line in hunk:
            text = f"{line.number:>{width}} {line.mark} {for_terminal(line.text)}"
            lines.append(RichText(text, style=_MARK[line.mark]))
    return _stack(lines, block.more)


def _output(block: b.Output) -> RenderableType:
    said = ending(block)
    parts = [RichText(for_terminal(block.text).rstrip("\n"))] if block.text.strip() else []
    if said:
        parts.append(RichText(one_line(said), style="red" if block.failed else "dim"))
    return Group(*parts)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(RichText(one_line(name)))
    for row in rows:
        table.add_row(*(RichText(one_line(cell)) for cell in row))
    return table


def _stack(lines: list[RichText], more: int) -> RenderableType:
    return Group(*lines, *([RichText(f"… {counted(more, 'more line')}", style="dim")] if more else []))


def _marked(text: RichText, *, hit: bool) -> RichText:
    if hit:
        text.stylize("bold")
    return text


def _highlighted(lines: list[str], path: str) -> list[RichText]:
    """Each line in the colours of its language; as it is where that is unknown."""
    clean = [for_terminal(line).replace("\n", " ") for line in lines]
    syntax = _syntax(path) if path and sum(map(len, clean)) <= _HIGHLIGHTED_CHARS else None
    if syntax is not None:
        coloured = list(syntax.highlight("\n".join(clean)).split("\n", allow_blank=True))[: len(clean)]
        if [line.plain for line in coloured] == clean:
            return coloured
    return [RichText(line) for line in clean]


def _syntax(path: str) -> Syntax | None:
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(path)
    return None if lexer == "default" else Syntax("", lexer, theme="ansi_dark", background_color="default")
