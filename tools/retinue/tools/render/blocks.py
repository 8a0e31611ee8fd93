"""What a call looks like, before anybody has said where: small frozen values without widths and colours. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "dim", "good", "bad", "warn"]
Mark = Literal[" ", "+", "-"]


@dataclass(frozen=True, slots=True)
class Heading:
    """The first line of a call: `name` is set off, `detail` follows it (Update src/a.py)."""

    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Text:
    """Several lines as they are."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """`number` is None where none is known. `hit`: this is the line that was looked for."""

    number: int | None
    text: str
    hit: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of a file. `path` says how to colour them. `more` counts lines that are left out at the end."""

    lines: tuple[CodeLine, ...]
    path: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`number` counts in the new file, for a removed line in the old one."""

    mark: Mark
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """Hunks, each of them lines in order. `more` counts lines that are left out at the end."""

    hunks: tuple[tuple[DiffLine, ...], ...]
    path: str = ""
    more: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """What a program wrote, and how it ended: None while that is not known. `failed` is by the program's meaning."""

    text: str
    exit_code: int | None = None
    failed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Markdown:
    text: str


Block = Heading | Line | Text | Code | Diff | Output | Table | Markdown
Blocks = tuple[Block, ...]


def code_of(text: str, path: str = "", *, first: int = 1, most: int = 200) -> Code:
    """The lines of a text, numbered from `first`, at most so many of them."""
    lines = text.splitlines()
    shown = tuple(CodeLine(number, line) for number, line in enumerate(lines[:most], first))
    return Code(shown, path, more=max(0, len(lines) - most))


def cut_diff(hunks: Iterable[Iterable[DiffLine]], path: str = "", *, most: int = 200) -> Diff:
    """At most so many lines of all hunks together."""
    kept: list[tuple[DiffLine, ...]] = []
    left, more = most, 0
    for hunk in hunks:
        lines = tuple(hunk)
        if left:
            kept.append(lines[:left])
        more += max(0, len(lines) - left)
        left -= min(left, len(lines))
    return Diff(tuple(kept), path, more)
