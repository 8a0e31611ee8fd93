"""Laws of the conversation: for any course of an agent, cut anywhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retinue.agents.history import Conversation, unpaired
from retinue.agents.model.messages import AssistantBlock, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from retinue.agents.model.port import StopReason
from retinue.agents.records import (
    AgentRecord,
    BlockComplete,
    MessageClosed,
    MessageWithdrawn,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.agents.recovery import AskAgain, Complete, GoOn, Rest, recovery
from retinue.tools.execution.calls import CallResult
from support.agents_scene import World

TOOLS = {tool.name: tool for tool in World().tools()}
REPEATABLE = {"Look", "Tell"}
STOPS: list[StopReason | None] = ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", None]


@st.composite
def courses(draw: st.DrawFn) -> list[AgentRecord]:
    """Records of a few turns, as a living agent writes them."""
    records: list[AgentRecord] = []
    step = 0
    for turn in range(1, draw(st.integers(1, 3)) + 1):
        for number in range(draw(st.integers(1, 3))):
            step += 1
            text = draw(st.sampled_from(["Go.", "news"])) if number == 0 or draw(st.booleans()) else ""
            records.append(RequestSent(turn=turn, step=step, input=(TextBlock(text=text),) if text else ()))
            records.extend(_withdrawn(draw, turn, step))
            records.extend(_message(draw, turn, step))
        records.append(TurnClosed(turn=turn, reason="done"))
    return records


def _withdrawn(draw: st.DrawFn, turn: int, step: int) -> list[AgentRecord]:
    if not draw(st.booleans()):
        return []
    half = BlockComplete(turn=turn, step=step, index=0, block=TextBlock(text="half"))
    return [half, MessageWithdrawn(turn=turn, step=step, reason="dropped")]


def _message(draw: st.DrawFn, turn: int, step: int) -> list[AgentRecord]:
    made: list[AssistantBlock] = draw(
        st.lists(
            st.sampled_from([TextBlock(text="So."), TextBlock(text=" "), ThinkingBlock(thinking="hm", signature="s")]),
            max_size=2,
        )
    )
    names = draw(st.lists(st.sampled_from(sorted(TOOLS)), max_size=4))
    calls = [ToolUseBlock(id=f"c{step}-{n}", name=name) for n, name in enumerate(names)]
    records: list[AgentRecord] = [
        BlockComplete(turn=turn, step=step, index=index, block=block) for index, block in enumerate([*made, *calls])
    ]
    closing = MessageClosed(
        turn=turn, step=step, stop_reason=draw(st.sampled_from(STOPS)), usage=Usage(input=1), model="m"
    )
    work = [entry for call in calls for entry in _call(draw, turn, step, call)]
    place = draw(st.integers(0, len(work)))
    return [*records, *work[:place], closing, *work[place:], StepClosed(turn=turn, step=step)]


def _call(draw: st.DrawFn, turn: int, step: int, call: ToolUseBlock) -> list[AgentRecord]:
    result = CallResult(
        call_id=call.id,
        name=call.name,
        content="ok",
        is_error=(failed := draw(st.booleans())),
        fails_group=failed and call.name == "Run",
        new_messages=draw(st.sampled_from([(), ("note",)])),
    )
    begun = ToolStarted(turn=turn, step=step, call_id=call.id, tool=call.name, read_only=call.name == "Look")
    done = ToolFinished(turn=turn, step=step, result=result)
    return [begun, done] if draw(st.booleans()) else [done]


@given(courses())
def test_what_a_request_would_carry_is_always_whole(course: list[AgentRecord]) -> None:
    conversation = Conversation()
    for record in course:
        conversation.apply(record)
        assert unpaired(conversation.messages()) == []


@given(courses())
def test_what_a_request_carried_stays_the_beginning_of_the_next_until_a_turn_ends(course: list[AgentRecord]) -> None:
    conversation = Conversation()
    before = conversation.messages()
    for record in course:
        conversation.apply(record)
        if isinstance(record, RequestSent):
            now = conversation.messages()
            whole = len(before) - 1
            assert now[:whole] == before[:whole]
            if before:
                assert now[whole].content[: len(before[whole].content)] == before[whole].content
            before = now


@given(courses(), st.data())
def test_every_call_of_a_crash_is_kept_repeated_or_reported_and_only_once(
    course: list[AgentRecord], data: st.DataObject
) -> None:
    conversation = Conversation.of(course[: data.draw(st.integers(0, len(course)))])
    step = conversation.open
    found = recovery(conversation, TOOLS.get)
    match found:
        case Rest() | GoOn():
            assert step is None
        case AskAgain():
            assert step is not None
            assert not step.started
        case Complete(answered=answered, run=run):
            assert step is not None
            dealt = [*step.finished, *(result.call_id for result in answered), *(call.id for call in run)]
            assert sorted(dealt) == sorted(call.id for call in step.calls())
            unsafe = {call.id for call in run if call.name not in REPEATABLE}
            assert not unsafe & set(step.started)


@given(courses(), st.data())
def test_a_recovered_conversation_is_whole(course: list[AgentRecord], data: st.DataObject) -> None:
    conversation = Conversation.of(course[: data.draw(st.integers(0, len(course)))])
    found = recovery(conversation, TOOLS.get)
    step = conversation.open
    if isinstance(found, Complete) and step is not None:
        if found.close_message:
            conversation.apply(
                MessageClosed(turn=step.turn, step=step.step, stop_reason=None, usage=Usage(), model="m")
            )
        again = [CallResult(call_id=call.id, name=call.name, content="again") for call in found.run]
        for result in (*found.answered, *again):
            conversation.apply(ToolFinished(turn=step.turn, step=step.step, result=result))
        conversation.apply(StepClosed(turn=step.turn, step=step.step))
        assert conversation.open is None
    assert unpaired(conversation.messages()) == []
