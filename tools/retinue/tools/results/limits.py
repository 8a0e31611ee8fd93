"""How much of a result the model sees. Pure: sizes in, decisions out."""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_CHARS = 50_000
CHARS_PER_TOKEN = 4
ABSOLUTE_CHARS = 100_000 * CHARS_PER_TOKEN
MESSAGE_CHARS = 200_000
PREVIEW_BYTES = 2_000


def limit_of(declared: int | None) -> int:
    """Characters of one result. None (Read, which limits itself) is bound by the absolute limit alone."""
    return ABSOLUTE_CHARS if declared is None else max(0, min(declared, DEFAULT_CHARS))


def to_spill(sizes: Sequence[int], kept: int, limit: int = MESSAGE_CHARS) -> frozenset[int]:
    """Which results of one message go to disk so that all fit: the largest first, of equal ones the earlier.

    `kept` is what a result still takes after it was spilled; smaller ones would only grow and stay.
    """
    total = sum(sizes)
    spilled: set[int] = set()
    for index in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        if total <= limit or sizes[index] <= kept:
            break
        spilled.add(index)
        total -= sizes[index] - kept
    return frozenset(spilled)


def preview_of(text: str, limit: int = PREVIEW_BYTES) -> str:
    """The head of a text: at most so many bytes of UTF-8, whole characters, whole lines where that loses little."""
    head = text[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    line = head.rfind("\n")
    return head[:line] if len(head) < len(text) and line > len(head) // 2 else head
