"""Instructions that a repository and its user keep for agents: CLAUDE.md, AGENTS.md and what these import."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from retinue.orchestrator.settings.definitions import Found
from retinue.orchestrator.settings.places import NOTES, OWN_NOTES, UserPlaces

MOST_CHARACTERS = 40_000
"""Of all instructions together: they are sent with each request."""

MOST_DEPTH = 5
_IMPORT = re.compile(r"(?<![\w`@])@([\w./~-]*[\w/-])")
_FENCE = re.compile(r"^[ \t]*(```|~~~)")

Read = Callable[[Path], bytes | None]


def gather_notes(
    contents: Mapping[str, bytes], places: UserPlaces, read: Read, kinds: Iterable[Found], *, foreign: bool
) -> str:
    """Empty when nobody keeps any. A text that was included already is not included again."""
    parts, seen = list[str](), set[str]()
    for path, theirs in places.notes():
        data = read(path) if foreign or not theirs else None
        if data is not None:
            _add(parts, seen, str(path), _text(data))
    if foreign:
        for path in (*NOTES, OWN_NOTES):
            if path in contents:
                _add(parts, seen, path, "\n".join(_expanded(path, contents, 0, set())))
    parts += _kinds(kinds)
    whole = "\n\n".join(parts)
    if len(whole) <= MOST_CHARACTERS:
        return whole
    return (
        f"{whole[:MOST_CHARACTERS]}\n\n[Cut here: these instructions are longer than {MOST_CHARACTERS:,} characters.]"
    )


def _add(parts: list[str], seen: set[str], path: str, text: str) -> None:
    text = text.strip()
    if text and text not in seen:
        seen.add(text)
        parts.append(f"# From {path}\n{text}")


def _expanded(path: str, contents: Mapping[str, bytes], depth: int, above: set[str]) -> Iterator[str]:
    """The text with what its `@path` name, in place; only files that were read with it, never from elsewhere."""
    fenced = False
    for line in _text(contents[path]).splitlines():
        fenced ^= _FENCE.match(line) is not None
        yield line
        if fenced or depth >= MOST_DEPTH:
            continue
        for found in _IMPORT.finditer(line):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1]))
            if target in contents and target not in above | {path}:
                yield f"[{target}:]"
                yield from _expanded(target, contents, depth + 1, above | {path})


def imports_of(path: str, data: bytes) -> tuple[str, ...]:
    """The files of a repository that a text names to be read with it."""
    found, fenced = list[str](), False
    for line in _text(data).splitlines():
        fenced ^= _FENCE.match(line) is not None
        if not fenced:
            names = (posixpath.normpath(posixpath.join(posixpath.dirname(path), f[1])) for f in _IMPORT.finditer(line))
            found += [name for name in names if not name.startswith(("/", "../", "~")) and name != "."]
    return tuple(dict.fromkeys(found))


def _kinds(kinds: Iterable[Found]) -> Iterator[str]:
    """Sub-agents that the Agent tool starts by name, besides the built-in ones."""
    found = {each.definition.name: each.definition for each in kinds if each.definition is not None}
    if found:
        lines = (f"- {name}: {' '.join(kind.description.split())[:500]}" for name, kind in sorted(found.items()))
        yield "\n".join(("# Further kinds of sub-agents", *lines))


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")
