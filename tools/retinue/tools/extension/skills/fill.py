"""Fills a skill's placeholders in. Pure: what a command in it prints is passed in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_INLINE = re.compile(r"(?:(?<=\s)|^)!`([^`\n]+)`", re.MULTILINE)
_PLACE = re.compile(r"\$\{([A-Z_]+)\}|\$ARGUMENTS\[(\d{1,3})\]|\$ARGUMENTS\b|\$(\d{1,3})\b|\$([A-Za-z_][\w-]*)")


@dataclass(frozen=True, slots=True)
class Filling:
    """`names` are those of the front matter, in the order of the arguments; `variables` stand in `${…}`."""

    given: str
    names: Sequence[str]
    variables: Mapping[str, str]

    @property
    def words(self) -> list[str]:
        try:
            return shlex.split(self.given)
        except ValueError:  # an open quote
            return self.given.split()


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, or a command whose output belongs in its place."""

    text: str
    is_command: bool = False


def pieces(body: str, filling: Filling) -> list[Piece]:
    """In their order, filled in. Arguments never bring a command of their own: commands are looked for before."""
    found: list[Piece] = []
    used = False
    rest = 0
    for match in _INLINE.finditer(body):
        text, some = _filled(body[rest : match.start()], filling)
        command, more = _filled(match[1], filling)
        found += [Piece(text), Piece(command, is_command=True)]
        used, rest = used or some or more, match.end()
    text, some = _filled(body[rest:], filling)
    if filling.given and not (used or some):
        text = f"{text}\n\nARGUMENTS: {filling.given}"
    return [*found, Piece(text)]


def has_commands(body: str) -> bool:
    return _INLINE.search(body) is not None


def _filled(text: str, filling: Filling) -> tuple[str, bool]:
    """And whether there was a place for the arguments. One pass: what is put in is not looked at again."""
    words = filling.words
    used = False

    def one(match: re.Match[str]) -> str:
        nonlocal used
        variable, index, short, name = match.groups()
        if variable is not None:
            return filling.variables.get(variable, match[0])
        if name is not None:
            if name not in filling.names:
                return match[0]
            index = str(list(filling.names).index(name))
        used = True
        place = index or short
        if place is None:
            return filling.given
        return words[int(place)] if int(place) < len(words) else ""

    return _PLACE.sub(one, text), used
