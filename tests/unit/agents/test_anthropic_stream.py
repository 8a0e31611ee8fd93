"""The events of a Messages stream, also those that no client library knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from retinue.agents.model.anthropic_stream import StreamFold
from retinue.agents.model.messages import TextBlock, ThinkingBlock, ToolUseBlock, Usage
from retinue.agents.model.port import BlockDone, MessageDone, StreamEvent, TextDelta


def made(value: object) -> Any:
    """Objects with attributes, as the library builds them."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: made(item) if key != "input" else item for key, item in value.items()})
    return value


def used(**numbers: int) -> dict[str, int | None]:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {name: numbers.get(name) for name in names}


START = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": used(input_tokens=5)}}
STOP = {"type": "message_stop"}


def opened(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grew(index: int, kind: str, **delta: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def closed(index: int) -> dict[str, object]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None, **numbers: int) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": used(**numbers)}


def fold(*events: dict[str, object]) -> list[StreamEvent]:
    folded = StreamFold("anthropic:m")
    return [meant for event in events for meant in folded.feed(made(event))]


def a_call(*parts: str, **block: object) -> ToolUseBlock:
    pieces = [grew(0, "input_json_delta", partial_json=part) for part in parts]
    (done,) = fold(opened(0, type="tool_use", id="c", name="Read", input=block.get("input", {})), *pieces, closed(0))
    assert isinstance(done, BlockDone)
    assert isinstance(done.block, ToolUseBlock)
    return done.block


def test_blocks_are_given_whole_when_they_close_and_numbered_as_we_give_them():
    events = fold(
        START,
        opened(0, type="thinking", thinking="", signature=""),
        grew(0, "thinking_delta", thinking="hm"),
        grew(0, "signature_delta", signature="sig"),
        closed(0),
        opened(1, type="server_tool_use", id="s", name="web_search", input={}),
        closed(1),
        opened(2, type="text", text=""),
        grew(2, "text_delta", text="a"),
        grew(2, "text_delta", text="b"),
        closed(2),
        ended("end_turn", output_tokens=7),
        STOP,
    )
    assert events[1:] == [
        BlockDone(index=0, block=ThinkingBlock(thinking="hm", signature="sig")),
        TextDelta(text="a"),
        TextDelta(text="b"),
        BlockDone(index=1, block=TextBlock(text="ab")),
        MessageDone(stop_reason="end_turn", usage=Usage(input=5, output=7)),
    ]


def test_the_input_of_a_call_is_joined_and_read_when_it_closes():
    assert a_call('{"file_', "", 'path": "x"}').input == {"file_path": "x"}


def test_a_call_without_input_has_an_empty_one_or_what_came_at_its_start():
    assert a_call().input == {}
    assert a_call(input={"p": 1}).input == {"p": 1}


@pytest.mark.parametrize("text", ['{"p": ', "[1]", "null", '{"n": NaN}', "{'p': 1}", "[" * 100_000])
def test_input_that_is_not_a_json_object_is_kept_as_malformed_text(text: str):
    call = a_call(text)
    assert call.malformed == text
    assert call.input == {}


def test_unknown_events_blocks_and_deltas_mean_nothing():
    assert (
        fold(
            {"type": "brand_new_event"},
            opened(0, type="brand_new_block"),
            grew(0, "text_delta", text="x"),
            closed(0),
            opened(1, type="text", text=""),
            grew(1, "citations_delta", citation=None),
            closed(1),
            grew(9, "text_delta", text="of no block"),
            closed(9),
        )
        == []
    )


def test_usage_takes_the_newest_numbers_and_does_not_add():
    events = fold(START, ended(None, output_tokens=3), ended("end_turn", output_tokens=9, input_tokens=6), STOP)
    assert events[-1] == MessageDone(stop_reason="end_turn", usage=Usage(input=6, output=9))


@pytest.mark.parametrize("reason", [None, "compaction", "tool_calls"])
def test_a_reason_that_is_not_known_is_judged_by_whether_there_are_calls(reason: str | None):
    call = (opened(0, type="tool_use", id="c", name="Read", input={}), closed(0))
    with_call, without = fold(START, *call, ended(reason), STOP)[-1], fold(START, ended(reason), STOP)[-1]
    assert isinstance(with_call, MessageDone)
    assert isinstance(without, MessageDone)
    assert (with_call.stop_reason, without.stop_reason) == ("tool_use", "end_turn")


def test_the_message_is_done_at_its_end_only():
    folded = StreamFold("anthropic:m")
    assert list(folded.feed(made(START)))
    assert not folded.done
    list(folded.feed(made(STOP)))
    assert folded.done
