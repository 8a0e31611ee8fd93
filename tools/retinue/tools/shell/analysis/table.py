"""The table of commands that may run unasked, and how a command line is held against one entry.

The entries are data (readonly.toml); settings may add more in the same form.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from retinue.tools.shell.analysis.model import Trait, Word

Globs = Literal["any", "anchored", "no"]

_FLAG = re.compile(r"-[A-Za-z0-9-]|-[^\x00-\x7f]")
"""What some program could take for a flag: `->` and a lone dash are not among them."""

_SWITCH, _VALUE, _GLUED, _PATH, _NUMBER, _TWO, _APART, _ATTACHED, _LAST = range(9)
_KINDS = {
    "": _SWITCH,
    "=": _VALUE,
    "[=]": _GLUED,
    "=path": _PATH,
    "=number": _NUMBER,
    "=2": _TWO,
    "=apart": _APART,
    "=attached": _ATTACHED,
    "=last": _LAST,
}
_NEVER_ATTACHED = frozenset((_SWITCH, _TWO, _APART))


class EntryData(BaseModel):
    """One command as the table writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: str
    flags: str = ""
    args: str = "none"
    first: str = ""
    max: int | None = Field(default=None, ge=0)
    globs: Globs = "any"
    sub: bool = False
    ordered: bool = False
    """Its flags stand before all else; behind an argument the program would take one for something else."""
    bundles: bool = True
    """Several letters in one word are several flags; otherwise only the first is looked at by the program."""
    responses: bool = False
    """It reads more arguments from the file that a word names which begins with @."""
    like: str | None = None
    abstract: bool = False
    names: tuple[str, ...] = ()
    """The commands that the entry is for, when they are other or more than its key."""


class Entry(NamedTuple):
    """One command, ready to be held against words."""

    name: str
    why: str
    flags: dict[str, int]
    args: str
    first: frozenset[str]
    max: int | None
    globs: Globs
    sub: bool
    ordered: bool
    bundles: bool
    responses: bool


class Scanned(NamedTuple):
    """A command line taken apart: other arguments, files that flags name, names of the flags, and their values."""

    arguments: list[Word]
    files: list[Word]
    flags: list[str]
    values: list[tuple[str, str]]
    first: Word | None
    """The first word of all."""


class NotListed(Exception):
    """Says which word the table does not vouch for."""


Table = Mapping[str, Entry]


def compile_table(data: Mapping[str, EntryData]) -> dict[str, Entry]:
    """ValueError for a flag that is written in no known way."""
    compiled: dict[str, Entry] = {}
    for name, entry in data.items():
        if entry.abstract:
            continue
        flags = _compile_flags(data[entry.like].flags) if entry.like is not None else {}
        flags.update(_compile_flags(entry.flags))
        first = frozenset(_dashed(token) for token in entry.first.split())
        for each in entry.names or (name,):
            compiled[each] = Entry(
                each,
                entry.why,
                flags,
                entry.args,
                first,
                entry.max,
                entry.globs,
                entry.sub,
                entry.ordered,
                entry.bundles,
                entry.responses,
            )
    return compiled


def _dashed(token: str) -> str:
    return token if token.startswith("-") else f"-{token}"


def _compile_flags(text: str) -> dict[str, int]:
    flags: dict[str, int] = {}
    for token in text.split():
        if token == "#":
            flags["#"] = _SWITCH
            continue
        at = min((i for i in (token.find("="), token.find("[=")) if i > 0), default=len(token))
        kind = _KINDS.get(token[at:])
        if kind is None:
            raise ValueError(f"{token!r} is no flag of the read-only table: write a, a=, --long, --long= or --long[=]")
        flags[_dashed(token[:at])] = kind
    return flags


@lru_cache(maxsize=1)
def builtin_table() -> Table:
    """The table that is part of the program."""
    return _table("readonly.toml")


@lru_cache(maxsize=1)
def edit_table() -> Table:
    """Commands that only make, change, move and remove the files that they name."""
    return _table("edits.toml")


def _table(name: str) -> Table:
    text = files("retinue.tools.shell.analysis").joinpath(name).read_text(encoding="utf-8")
    return compile_table({name: EntryData.model_validate(entry) for name, entry in tomllib.loads(text).items()})


def extended(more: Mapping[str, EntryData]) -> Table:
    """The table with entries of settings; one of the same name replaces ours."""
    return {**builtin_table(), **compile_table(more)}


class _Scanner:
    """Reads one command line once."""

    def __init__(self, entry: Entry, words: Sequence[Word]) -> None:
        self.kinds = entry.flags
        self.ordered = entry.ordered
        self.bundles = entry.bundles
        self.words = words
        self.at = 0
        self.found = Scanned([], [], [], [], words[0] if words else None)

    def run(self) -> Scanned:
        words, arguments = self.words, self.found.arguments
        while self.at < len(words):
            word = words[self.at]
            self.at += 1
            text = word.value
            if text[:1] != "-" or (text not in self.kinds and not _FLAG.match(text)):
                arguments.append(word)
            elif self.ordered and arguments:
                raise NotListed(text)
            elif text == "--":
                arguments.extend(words[self.at :])
                break
            elif text.startswith("--"):
                self._long(word)
            else:
                self._short(word)
        return self.found

    def _long(self, word: Word) -> None:
        name, glued, value = word.value.partition("=")
        kind = self.kinds.get(name)
        if kind is None or (kind in _NEVER_ATTACHED if glued else kind == _ATTACHED):
            raise NotListed(word.value)
        self.found.flags.append(name)
        if glued:
            self._value(kind, name, word._replace(value=value))
        else:
            self._next(kind, name, word)

    def _short(self, word: Word) -> None:
        text, kinds = word.value, self.kinds
        whole = kinds.get(text)
        if whole is not None:
            self.found.flags.append(text)
            self._next(whole, text, word)
        elif not ("#" in kinds and text[1:].isdecimal() and text.isascii()):
            self._bundle(word)

    def _bundle(self, word: Word) -> None:
        text = word.value
        for i in range(1, len(text)):
            name = f"-{text[i]}"
            kind = self.kinds.get(name)
            if kind is None:
                raise NotListed(text)
            self.found.flags.append(name)
            if kind == _SWITCH:
                if not self.bundles:
                    raise NotListed(text)
                continue
            if i + 1 < len(text) and kind == _APART:
                raise NotListed(text)
            if i + 1 < len(text):
                self._value(kind, name, word._replace(value=text[i + 1 :]))
            else:
                self._next(kind, name, word)
            return

    def _next(self, kind: int, name: str, word: Word) -> None:
        """Takes the values that stand in the words behind a flag."""
        if kind == _LAST and self.at >= len(self.words):
            return
        for _ in range(2 if kind == _TWO else 0 if kind in (_SWITCH, _GLUED) else 1):
            if self.at >= len(self.words):
                raise NotListed(word.value)
            value = self.words[self.at]
            if value.traits & Trait.GLOB:
                raise NotListed(value.raw)  # it may find several: those behind the first would be arguments
            self._value(kind, name, value)
            self.at += 1

    def _value(self, kind: int, name: str, word: Word) -> None:
        self.found.values.append((name, word.value))
        if kind == _PATH:
            self.found.files.append(word)
        elif kind == _NUMBER and not (word.value.isascii() and word.value.isdecimal()):
            raise NotListed(word.value)


def scan(entry: Entry, words: Sequence[Word]) -> Scanned:
    """Takes apart what follows the command's name. NotListed for the first word that the entry does not have."""
    return _Scanner(entry, words).run()
