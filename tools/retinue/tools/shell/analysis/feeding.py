"""Whether what a command prints can only be names of plain files of the tree: what xargs may be fed unasked. Pure.

A line of a file may name anything; a name with a blank in it falls apart into others; a link leads where it likes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from retinue.tools.shell.analysis.model import Part, Word, names
from retinue.tools.shell.analysis.table import NotListed, Table, scan

_FIND_ELSEWHERE = names("-o -or , -printf -ls -print")
_SEARCH = names(
    """
    -r -i -w -x -E -F -P -e -v -s -I -g -t -T -S -u -U --recursive --ignore-case --word-regexp --fixed-strings
    --extended-regexp --perl-regexp --regexp --include --exclude --exclude-dir --glob --type --type-not --hidden
    --smart-case --invert-match --no-ignore
    """
)
_FIND_LINKS = frozenset(("-H", "-P"))
_PLACED = re.compile(r"[A-Za-z0-9_./]")
Names = Literal["placed", "any"]
_SEARCHES = {
    "grep": (names("-l -L --files-with-matches --files-without-match"), names("-Z --null")),
    "rg": (names("-l --files-with-matches --files-without-match --files"), names("-0 --null")),
}
"""For each, flags that let it print names only, and those that end each with NUL."""


def feeds_names(part: Part, table: Table) -> Names | None:
    """None when it may print something else; `placed` when each begins with a folder and cannot look like a flag."""
    words = part.inner
    if not words or part.raw.redirects:
        return None
    if words[0].value == "find":
        said = [word.value for word in words]
        if not _finds_files(said):
            return None
        starts = takewhile(
            lambda text: text[:1] not in ("(", "!", ","), (text for text in said[1:] if text not in _FIND_LINKS)
        )
        return "placed" if all(map(_PLACED.match, takewhile(lambda text: text[:1] != "-", starts))) else "any"
    if words[0].value not in _SEARCHES:
        return None
    return _searches_files(words, table)


def _finds_files(said: Sequence[str]) -> bool:
    plain = said.count("-type") == 1 and said[said.index("-type") :][1:2] == ["f"]
    negated = plain and said[said.index("-type") - 1] in ("!", "-not")
    return plain and not negated and said[-1] == "-print0" and _FIND_ELSEWHERE.isdisjoint(said)


def _searches_files(words: Sequence[Word], table: Table) -> Names | None:
    by_name, by_nul = _SEARCHES[words[0].value]
    try:
        entry = table[words[0].value]
        scanned = scan(entry, words[1:])
    except (NotListed, KeyError):
        return None
    flags = set(scanned.flags)
    if not (flags & by_name and flags & by_nul) or not flags <= by_name | by_nul | _SEARCH:
        return None
    searched = scanned.arguments if flags & entry.first else scanned.arguments[1:]
    return "placed" if searched and all(_PLACED.match(word.raw) for word in searched) else "any"
