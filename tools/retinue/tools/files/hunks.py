"""The difference between two texts, as people read it: hunks of lines with some lines around. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

CONTEXT = 3
MAX_LINES = 400
MAX_CHARS = 500
MAX_TEXT = 8_000_000
_COMPARED = 1_000
_PAIRS = 20_000
"""So many lines, and so many pairs of equal lines, are matched with each other; for more it would take too long."""

Span = tuple[int, int, int, int]


class Hunk(BaseModel):
    """Lines with " ", "-" or "+" in front. Starts are counted from 1. `more` counts lines that are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]
    more: int = 0


def hunks(before: str, after: str) -> tuple[Hunk, ...]:
    """In the order of the file; as many as fit into `MAX_LINES` lines, but at least the beginning of the first.

    None of a text that is larger than `MAX_TEXT` characters.
    """
    if max(len(before), len(after)) > MAX_TEXT:
        return ()
    old, new = before.splitlines(), after.splitlines()
    result: list[Hunk] = []
    room = MAX_LINES
    for group in _grouped(list(_changes(old, new))):
        hunk = _hunk(group, old, new, room)
        result.append(hunk)
        room -= len(hunk.lines)
        if room <= 0:
            break
    return tuple(result)


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Span]:
    """Where old lines i to j became new lines k to l."""
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if not a and not b:
        return
    if _can_be_matched(a, b):
        from difflib import SequenceMatcher  # here, because it is slow to import

        for tag, i, j, k, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            if tag != "equal":
                yield head + i, head + j, head + k, head + n
    elif len(a) == len(b):
        yield from ((i, i + 1, i, i + 1) for i in range(head, head + len(a)) if old[i] != new[i])
    else:
        yield head, len(old) - tail, head, len(new) - tail


def _can_be_matched(a: Sequence[str], b: Sequence[str]) -> bool:
    if max(len(a), len(b)) > _COMPARED:
        return False
    there = Counter(b)
    return sum(count * there[line] for line, count in Counter(a).items()) <= _PAIRS


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def _grouped(changes: Sequence[Span]) -> Iterator[list[Span]]:
    """Changes whose surroundings touch belong together."""
    group: list[Span] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: Sequence[Span], old: Sequence[str], new: Sequence[str], room: int) -> Hunk:
    first, last = group[0], group[-1]
    around = min(CONTEXT, first[0])
    behind = min(CONTEXT, len(old) - last[1])
    lines: list[str] = [f" {line}" for line in old[first[0] - around : first[0]]]
    at = first[0]
    for i, j, k, n in group:
        lines += [f" {line}" for line in old[at:i]]
        lines += [f"-{line}" for line in old[i:j]]
        lines += [f"+{line}" for line in new[k:n]]
        at = j
    lines += [f" {line}" for line in old[at : at + behind]]
    return Hunk(
        old_start=first[0] - around + 1,
        old_lines=around + last[1] - first[0] + behind,
        new_start=first[2] - around + 1,
        new_lines=around + last[3] - first[2] + behind,
        lines=tuple(_bounded(line) for line in lines[:room]),
        more=max(0, len(lines) - room),
    )


def _bounded(line: str) -> str:
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}…"
