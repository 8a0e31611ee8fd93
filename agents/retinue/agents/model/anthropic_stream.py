"""The events of a Messages stream, folded into ours. Pure; judges by `.type` strings alone.

The client library builds a type that it does not know into some class that it does, so classes say nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, cast, get_args

from pydantic import JsonValue

from retinue.agents.model.messages import (
    AssistantBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from retinue.agents.model.port import (
    BlockDone,
    MessageDone,
    MessageStarted,
    SearchFound,
    StopReason,
    StreamEvent,
    TextDelta,
)
from retinue.tools.ports import SearchHit

if TYPE_CHECKING:
    from anthropic.types import (
        MessageDeltaUsage,
        RawContentBlockDeltaEvent,
        RawContentBlockStartEvent,
        RawMessageStreamEvent,
        WebSearchToolResultBlockContent,
    )
    from anthropic.types import Usage as SentUsage


@dataclass(slots=True)
class _Open:
    """A block that is still growing. `input` is what a server sent at its start instead of piece by piece."""

    kind: str
    id: str = ""
    name: str = ""
    data: str = ""
    signature: str = ""
    input: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    parts: list[str] = field(default_factory=list[str])


class StreamFold:
    """Fed with one stream's events in order. `model` is what we call it. `done` once the message is whole."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._open: dict[int, _Open] = {}
        self._blocks = 0
        self._calls = False
        self._stop: str | None = None
        self._usage = Usage()
        self.done = False

    def feed(self, event: RawMessageStreamEvent) -> Iterator[StreamEvent]:
        """What the event means to us; nothing for what we do not know."""
        match event.type:
            case "message_start":
                self._usage = _usage(self._usage, event.message.usage)
                yield MessageStarted(message_id=event.message.id, model=self._model)
            case "content_block_start":
                self._start(event)
                if event.content_block.type == "web_search_tool_result":
                    yield _found(event.content_block.content)
            case "content_block_delta":
                yield from self._grow(event)
            case "content_block_stop":
                yield from self._finish(event.index)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                self._usage = _usage(self._usage, event.usage)
            case "message_stop":
                self.done = True
                yield MessageDone(stop_reason=self._stop_reason(), usage=self._usage)

    def _start(self, event: RawContentBlockStartEvent) -> None:
        block = event.content_block
        opened = _Open(kind=block.type)
        match block.type:
            case "text":
                opened.parts.append(block.text or "")
            case "tool_use":
                opened.id, opened.name = block.id, block.name
                if block.input:
                    opened.input = cast(dict[str, JsonValue], block.input)
            case "thinking":
                opened.parts.append(block.thinking or "")
                opened.signature = block.signature or ""
            case "redacted_thinking":
                opened.data = block.data
            case _:
                return
        self._open[event.index] = opened

    def _grow(self, event: RawContentBlockDeltaEvent) -> Iterator[StreamEvent]:
        opened = self._open.get(event.index)
        delta = event.delta
        if opened is None:
            return
        match delta.type:
            case "text_delta":
                opened.parts.append(delta.text)
                yield TextDelta(text=delta.text)
            case "input_json_delta":
                opened.parts.append(delta.partial_json)
            case "thinking_delta":
                opened.parts.append(delta.thinking)
            case "signature_delta":
                opened.signature += delta.signature
            case _:
                return

    def _finish(self, index: int) -> Iterator[StreamEvent]:
        opened = self._open.pop(index, None)
        block = _closed(opened) if opened is not None else None
        if block is None:
            return
        self._calls = self._calls or isinstance(block, ToolUseBlock)
        yield BlockDone(index=self._blocks, block=block)
        self._blocks += 1

    def _stop_reason(self) -> StopReason:
        """A reason that we do not know, or none, is judged by what the message asks for."""
        if self._stop in get_args(StopReason):
            return cast(StopReason, self._stop)
        return "tool_use" if self._calls else "end_turn"


def _found(content: WebSearchToolResultBlockContent) -> SearchFound:
    """A list of pages, or one error."""
    if not isinstance(content, list):
        return SearchFound(failed=str(content.error_code))
    return SearchFound(
        hits=tuple(SearchHit(title=each.title, url=each.url) for each in content if each.type == "web_search_result")
    )


def _closed(opened: _Open) -> AssistantBlock | None:
    """None for an empty text, which could not be sent back."""
    text = "".join(opened.parts)
    match opened.kind:
        case "text":
            return TextBlock(text=text) if text else None
        case "thinking":
            return ThinkingBlock(thinking=text, signature=opened.signature)
        case "redacted_thinking":
            return RedactedThinkingBlock(data=opened.data)
        case _:
            return _call(opened, text)


def _call(opened: _Open, text: str) -> ToolUseBlock:
    if not text.strip():
        return ToolUseBlock(id=opened.id, name=opened.name, input=opened.input)
    try:
        value = cast(object, json.loads(text, parse_constant=_no_json))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return ToolUseBlock(id=opened.id, name=opened.name, malformed=text)
    return ToolUseBlock(id=opened.id, name=opened.name, input=cast(dict[str, JsonValue], value))


def _no_json(name: str) -> NoReturn:
    """Python reads NaN and Infinity, which are not JSON and could not be sent back."""
    raise ValueError(name)


def _usage(known: Usage, sent: SentUsage | MessageDeltaUsage | None) -> Usage:
    """The numbers are cumulative: the newest that is there, and not 0, counts."""
    if sent is None:
        return known
    return Usage(
        input=sent.input_tokens or known.input,
        output=sent.output_tokens or known.output,
        cache_read=sent.cache_read_input_tokens or known.cache_read,
        cache_write=sent.cache_creation_input_tokens or known.cache_write,
    )
