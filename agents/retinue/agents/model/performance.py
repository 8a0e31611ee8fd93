"""A planned answer as timed pieces, in the grain of the wire: blocks open, grow and close, or the stream breaks. Pure.

The scripted model makes events of them, the server makes server-sent events: so both break in the same places.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from retinue.agents.model.course import Plan
from retinue.agents.model.messages import AssistantBlock, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from retinue.agents.model.port import StopReason
from retinue.agents.model.script import Fail, FailKind, Pace

CHARS_PER_TOKEN = 4
_FRAGMENT_S = 0.05  # a fragment for a person to see, not an event per token
_FRAGMENT_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Began:
    message_id: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Opened:
    index: int
    block: AssistantBlock


@dataclass(frozen=True, slots=True)
class Grew:
    """`text` is more of the block's text, thinking, or of the JSON text of its input."""

    index: int
    block: AssistantBlock
    text: str


@dataclass(frozen=True, slots=True)
class Closed:
    index: int
    block: AssistantBlock


@dataclass(frozen=True, slots=True)
class Ended:
    stop_reason: StopReason
    usage: Usage


@dataclass(frozen=True, slots=True)
class Refused:
    """Before anything was sent: an HTTP status."""

    status: int
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Snapped:
    """In mid-stream: drop, close, error or stall."""

    how: FailKind


Piece = Began | Opened | Grew | Closed | Ended | Refused | Snapped


@dataclass(frozen=True, slots=True)
class Timed:
    """`after_s` to wait before the piece."""

    after_s: float
    piece: Piece


def perform(plan: Plan, usage: Usage, pace: Pace, fail: Fail | None) -> Iterator[Timed]:
    """Up to one `Ended`, `Refused` or `Snapped`. `fail` is how this attempt goes wrong, None when it goes well."""
    if fail is not None and fail.status is not None:
        yield Timed(0.0, Refused(fail.status, fail.retry_after))
        return
    snap = fail.kind if fail is not None and fail.kind != "malformed" else None
    at = (fail.block or len(plan.blocks)) - 1 if fail is not None and snap else -1
    yield Timed(pace.first_token_s, Began(plan.message_id, usage))
    for index, block in enumerate(plan.blocks):
        cut = snap is not None and index == at and snap != "close"
        yield from _grow(index, block, pace, cut=cut)
        if snap is not None and index == at:
            yield Timed(0.0, Snapped(snap))
            return
    yield Timed(0.0, Ended(plan.stop_reason, usage))


def _grow(index: int, block: AssistantBlock, pace: Pace, *, cut: bool) -> Iterator[Timed]:
    """All of a block, or its first half."""
    text = text_of(block)
    yield Timed(0.0, Opened(index, block))
    rate = pace.tokens_per_second * CHARS_PER_TOKEN if pace.tokens_per_second else None
    size = max(1, int(rate * _FRAGMENT_S)) if rate else _FRAGMENT_CHARS
    shown = text[: len(text) // 2] if cut else text
    for start in range(0, len(shown), size):
        fragment = shown[start : start + size]
        yield Timed(len(fragment) / rate if rate else 0.0, Grew(index, block, fragment))
    if not cut:
        yield Timed(0.0, Closed(index, block))


def text_of(block: AssistantBlock) -> str:
    """What of a block streams: its text, its thinking, or the JSON text of its input."""
    match block:
        case TextBlock():
            return block.text
        case ThinkingBlock():
            return block.thinking
        case ToolUseBlock():
            return block.malformed if block.malformed is not None else json.dumps(block.input, ensure_ascii=False)
        case _:
            return block.data
