"""What of ripgrep's output is shown: nothing of a file that may not be read. Pure but for who says what may.

It runs with `--null`, so that no name of a file can pass for another one: a name, a null byte, then the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Readable = Callable[[str], bool]
_NOTICE = re.compile(
    r"(.*?): (?:binary file matches|WARNING: stopped searching binary file after match) \(found .*\Z", re.DOTALL
)
_NUMBER = re.compile(r"([0-9]+)([:-])(.*)\Z", re.DOTALL)
_GAP = "--"


class _Joined:
    """Names may hold line ends: entries belong together up to the null byte behind the name."""

    def __init__(self) -> None:
        self._begun = ""

    def add(self, entry: str) -> str | None:
        whole = self._begun + entry
        if "\0" in whole or _NOTICE.match(whole):
            self._begun = ""
            return whole
        self._begun = f"{whole}\n"
        return None


class Counts:
    """`name:count` of each file."""

    def __init__(self, readable: Readable) -> None:
        self._readable = readable
        self._joined = _Joined()

    def __call__(self, entry: str) -> tuple[str, ...]:
        name, null, count = (self._joined.add(entry) or "").partition("\0")
        return (f"{name}:{count}",) if null and self._readable(name) else ()


class Lines:
    """Matching lines and those around them, with a mark between the groups where lines are left out."""

    def __init__(self, readable: Readable, *, numbered: bool) -> None:
        self._readable = readable
        self._numbered = numbered
        self._joined = _Joined()
        self._any = self._gap = False

    def __call__(self, entry: str) -> tuple[str, ...]:
        if entry == _GAP:
            self._gap = self._any
            return ()
        whole = self._joined.add(entry)
        shown = None if whole is None else self._shown(whole)
        if shown is None:
            return ()
        gap, self._gap, self._any = self._gap, False, True
        return (_GAP, shown) if gap else (shown,)

    def _shown(self, whole: str) -> str | None:
        name, null, rest = whole.partition("\0")
        if not null:
            notice = _NOTICE.match(whole)
            return whole if notice and self._readable(notice[1]) else None
        if not self._readable(name):
            return None
        found = _NUMBER.match(rest.removesuffix("\r"))
        if found is None:
            return f"{name}:{rest}"
        number, mark, text = found.groups()
        return f"{name}{mark}{number}{mark}{text}" if self._numbered else f"{name}{mark}{text}"
