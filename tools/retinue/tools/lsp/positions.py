"""Columns as people count them, and as the protocol does. Pure."""

from __future__ import annotations

from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]


def to_units(line: str, column: int, encoding: Encoding) -> int:
    """From characters before the position to the server's units; a column behind the end is the end."""
    before = line[: max(column, 0)]
    return _units(before, encoding)


def from_units(line: str, units: int, encoding: Encoding) -> int:
    """From the server's units to characters; a position inside of a character is before it."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    column = passed = 0
    for character in line:
        passed += _units(character, encoding)
        if passed > units:
            break
        column += 1
    return column


def _units(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + sum(character > "\uffff" for character in text)
    return len(text.encode("utf-8", "surrogatepass"))
