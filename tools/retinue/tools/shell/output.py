"""The part of a command's output that is shown. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.tools.text import printable

_BYTES_PER_CHAR = 4


@dataclass(frozen=True, slots=True)
class Shown:
    text: str
    truncated: bool


def window_bytes(max_chars: int) -> int:
    """How many bytes of each end are looked at: enough for `max_chars` characters, colours included."""
    return max_chars * _BYTES_PER_CHAR


def shown(head: bytes, tail: bytes, total: int, max_chars: int) -> Shown:
    """`head` is all of it when `tail` is empty; else what lies between them is left out, and said so."""
    if not tail:
        text = printable(head.decode("utf-8", "replace"))
        if len(text) <= max_chars:
            return Shown(text, truncated=False)
        first, last = text, text
    else:
        first = printable(head.decode("utf-8", "replace"))
        last = printable(tail.decode("utf-8", "replace"))
    half = max_chars // 2
    note = f"\n[… the middle of {total:,} bytes of output is left out …]\n"
    return Shown(first[:half] + note + last[-half:], truncated=True)
