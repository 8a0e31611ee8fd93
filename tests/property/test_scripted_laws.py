"""The scripted model is a function of script and conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from retinue.agents.model.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from retinue.agents.model.port import BlockDone, ModelRequest, StreamEvent
from retinue.agents.model.script import Script
from retinue.agents.model.scripted import ScriptedModel

WORDS = ("red", "green", "blue")
words = st.sampled_from(WORDS)


@dataclass(frozen=True)
class Step:
    """What comes next: text and results of `words`; `keep` blocks of the answer arrive when its stream breaks."""

    text: str
    results: tuple[tuple[str, bool], ...]
    keep: int


@st.composite
def turns(draw: st.DrawFn) -> dict[str, JsonValue]:
    calls = [{"Read": {"word": draw(words), "who": "${agent}"}} for _ in range(draw(st.integers(0, 3)))]
    turn: dict[str, JsonValue] = {"calls": [*calls]}
    if not calls or draw(st.booleans()):
        turn["say"] = f"I see {draw(words)}"
    if draw(st.booleans()):
        turn["when"] = draw(st.sampled_from([draw(words), {"error": True}, {"tool_result_of": "Read#2"}]))
        turn["repeat"] = draw(st.sampled_from([1, 2, True]))
    if draw(st.integers(0, 4)) == 0:
        turn["wait_for"] = draw(words)
    if draw(st.integers(0, 2)) == 0:
        kinds = ["drop", "close", "error", 429, *(["malformed"] if calls else [])]
        turn["fail"] = draw(st.sampled_from(kinds))
    return turn


scripts = st.lists(turns(), min_size=1, max_size=6).map(lambda made: Script.model_validate({"agents": {"a": made}}))
steps = st.lists(
    st.builds(
        Step,
        words,
        st.tuples(*[st.tuples(words, st.booleans())] * 3),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


def events_of(model: ScriptedModel, messages: tuple[Message, ...], attempt: int) -> list[StreamEvent]:
    request = ModelRequest(run="r", agent="a", model="script:x", system="s", messages=messages, attempt=attempt)

    async def collect() -> list[StreamEvent]:
        return [event async for event in model.stream(request)]

    return asyncio.run(collect())


def heard(step: Step, owed: Sequence[ToolUseBlock]) -> UserMessage:
    results = [
        ToolResultBlock(tool_use_id=call.id, content=text, is_error=error)
        for call, (text, error) in zip(owed, step.results, strict=False)
    ]
    return UserMessage(content=(*results, TextBlock(text=step.text)))


def played(script: Script, course: Sequence[Step]) -> list[tuple[tuple[Message, ...], list[StreamEvent]]]:
    """One process plays all of it; a broken stream keeps some blocks, or is asked again when there are none."""
    model = ScriptedModel(script)
    messages: tuple[Message, ...] = ()
    owed: tuple[ToolUseBlock, ...] = ()
    seen: list[tuple[tuple[Message, ...], list[StreamEvent]]] = []
    for step in course:
        messages += (heard(step, owed),)
        events = events_of(model, messages, 0)
        blocks: tuple[AssistantBlock, ...] = tuple(e.block for e in events if isinstance(e, BlockDone))[: step.keep]
        if events[-1].kind == "message_done" or not blocks:
            events = events_of(model, messages, 99) if events[-1].kind == "broken" else events
            blocks = tuple(e.block for e in events if isinstance(e, BlockDone))
        seen.append((messages, events))
        messages += (AssistantMessage(content=blocks),)
        owed = tuple(block for block in blocks if isinstance(block, ToolUseBlock))
    return seen


@settings(deadline=None)
@given(scripts, steps)
def test_a_fresh_process_gives_the_same_answer_to_any_beginning_of_a_conversation(script: Script, course: list[Step]):
    for messages, events in played(script, course):
        attempt = 99 if events[-1].kind == "message_done" else 0
        assert events_of(ScriptedModel(script), messages, attempt) == events


@settings(deadline=None)
@given(scripts, steps)
def test_ids_of_calls_are_unique_in_a_conversation(script: Script, course: list[Step]):
    conversation = played(script, course)[-1][0]
    ids = [block.id for message in conversation for block in message.content if isinstance(block, ToolUseBlock)]
    assert len(ids) == len(set(ids))


@settings(deadline=None)
@given(scripts, steps)
def test_every_stream_has_one_end_and_it_comes_last(script: Script, course: list[Step]):
    for _, events in played(script, course):
        ends = [k for k, event in enumerate(events) if event.kind in ("message_done", "broken")]
        assert ends == [len(events) - 1]


@pytest.mark.parametrize("count", [1, 5])
def test_a_turn_without_condition_is_taken_once(count: int):
    script = Script.model_validate({"agents": {"a": [{"say": f"turn {k}"} for k in range(count)]}})
    course = [Step("red", ((("red", False)),) * 3, 3)] * (count + 1)
    said = [
        e.block.text
        for _, events in played(script, course)
        for e in events
        if isinstance(e, BlockDone) and isinstance(e.block, TextBlock)
    ]
    assert said[:-1] == [f"turn {k}" for k in range(count)]
    assert said[-1].startswith("script: no turn left")
