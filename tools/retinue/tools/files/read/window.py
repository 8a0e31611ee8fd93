"""Which lines of a text are shown, and how. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.tools.errors import ToolError
from retinue.tools.files.read.constants import CHARS_PER_TOKEN, DEFAULT_LINES, LINE_CHARS, MAX_TOKENS


@dataclass(frozen=True, slots=True)
class Window:
    """`lines` begin at number `first` (from 1); `cut` says that they were too many tokens for one result.

    `shortened` counts the lines of which only the beginning is shown.
    """

    lines: tuple[str, ...]
    first: int
    total: int
    cut: bool = False
    shortened: int = 0

    @property
    def whole(self) -> bool:
        return self.first == 1 and len(self.lines) == self.total and not self.shortened


def lines_of(text: str) -> list[str]:
    """Lines end with a newline and nothing else; the last one may lack it."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def window(lines: Sequence[str], offset: int | None, limit: int | None) -> Window:
    """Long lines are shown in part, unless their number was given: then they come whole.

    ToolError when a range that was asked for by number does not fit, or a single line of it does not.
    """
    first = max(offset or 1, 1)
    chosen = lines[first - 1 : first - 1 + (limit or DEFAULT_LINES)]
    long = 0 if limit is not None else sum(len(line) > LINE_CHARS for line in chosen)
    shown = [shortened(line) for line in chosen] if long else chosen
    fitting = _fitting(shown, first)
    if fitting == len(shown):
        return Window(tuple(shown), first, len(lines), shortened=long)
    if fitting == 0:
        raise ToolError(
            f"Line {first} alone is larger than {MAX_TOKENS:,} tokens. Use Grep to find the part that you need."
        )
    if limit is not None:
        raise ToolError(
            f"Lines {first} to {first + len(shown) - 1} are more than {MAX_TOKENS:,} tokens. "
            f"Ask for at most {fitting} lines, or use Grep to find the part that you need."
        )
    long = sum(len(line) > LINE_CHARS for line in chosen[:fitting])
    return Window(tuple(shown[:fitting]), first, len(lines), cut=True, shortened=long)


def shortened(line: str) -> str:
    more = len(line) - LINE_CHARS
    return line if more <= 0 else f"{line[:LINE_CHARS]}… [{more:,} more characters]"


def numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, first))


def _fitting(lines: Sequence[str], first: int) -> int:
    """How many of the lines fit into one result."""
    room = MAX_TOKENS * CHARS_PER_TOKEN
    for index, line in enumerate(lines):
        room -= len(line) + len(str(first + index)) + 2
        if room < 0:
            return index
    return len(lines)
