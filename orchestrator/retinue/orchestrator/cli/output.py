"""What a command prints: tables for a terminal, plain lines for a pipe, one JSON document for a program.

Text that agents wrote is made harmless before it is shown. Nothing here knows a command.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from retinue.tools.text import for_terminal

if TYPE_CHECKING:
    from pydantic import JsonValue
    from rich.console import Console, RenderableType
    from rich.table import Table

PIPE_WIDTH = 10_000
"""A pipe has no width: nothing is cut or wrapped there."""


def console(*, stderr: bool = False) -> Console:
    """Honours NO_COLOR. Never reads markup out of a text."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, markup=False, width=PIPE_WIDTH)


def show(*parts: RenderableType) -> None:
    """Each on lines of its own."""
    made = console()
    if made.is_terminal:
        for part in parts:
            made.print(part)
        return
    with made.capture() as captured:
        for part in parts:
            made.print(part)
    say(*(line.rstrip() for line in for_terminal(captured.get()).splitlines()))


def say(*lines: str) -> None:
    """Plain lines for a person, without anything that a terminal would obey."""
    for line in lines:
        typer.echo(for_terminal(line))


def note(*lines: str) -> None:
    """The same on stderr: what a program that reads the output must not see."""
    for line in lines:
        typer.echo(for_terminal(line), err=True)


def write_json(value: JsonValue) -> None:
    """One document. Everything but ASCII is escaped, so that it is safe on a terminal, too."""
    typer.echo(json.dumps(value, indent=2))


def write_json_line(value: JsonValue) -> None:
    """One document a line, for what has no end yet."""
    typer.echo(json.dumps(value, separators=(",", ":")))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], *, wraps: frozenset[str] = frozenset()) -> Table:
    """Aligned, without lines. Only the columns in `wraps` may take several lines; others are cut on a narrow screen."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        made.add_column(name, overflow="fold" if name in wraps else "ellipsis", no_wrap=name not in wraps)
    for row in rows:
        made.add_row(*(Text(for_terminal(cell)) for cell in row))
    return made


def iso(at: float | None) -> str | None:
    """A time for programs."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def ago(at: float | None, now: float) -> str:
    """A time for people: how long ago, in one unit."""
    return "" if at is None else f"{span(max(now - at, 0.0))} ago"


def span(seconds: float) -> str:
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
