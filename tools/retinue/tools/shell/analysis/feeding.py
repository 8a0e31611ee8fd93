"""Whether what a command prints can only be names of plain files of the tree: what xargs may be fed unasked. Pure.

A line of a file may name anything; a name with a blank in it falls apart into others; a link leads where it likes.
"""

from __future__ import annotations

from collections.abc import Sequence

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
_SEARCHES = {
    "grep": (names("-l -L --files-with-matches --files-without-match"), names("-Z --null")),
    "rg": (names("-l --files-with-matches --files-without-match --files"), names("-0 --null")),
}
"""For each, flags that let it print names only, and those that end each with NUL."""


def feeds_names(part: Part, table: Table) -> bool:
    words = part.inner
    if not words or part.raw.redirects:
        return False
    if words[0].value == "find":
        return _finds_files([word.value for word in words])
    if words[0].value not in _SEARCHES:
        return False
    return _searches_files(words, table)


def _finds_files(said: Sequence[str]) -> bool:
    plain = said.count("-type") == 1 and said[said.index("-type") :][1:2] == ["f"]
    negated = plain and said[said.index("-type") - 1] in ("!", "-not")
    return plain and not negated and said[-1] == "-print0" and _FIND_ELSEWHERE.isdisjoint(said)


def _searches_files(words: Sequence[Word], table: Table) -> bool:
    by_name, by_nul = _SEARCHES[words[0].value]
    try:
        flags = set(scan(table[words[0].value], words[1:]).flags)
    except (NotListed, KeyError):
        return False
    return bool(flags & by_name and flags & by_nul) and flags <= by_name | by_nul | _SEARCH
