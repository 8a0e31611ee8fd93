"""A recording answers as the model did then, or says that the run has taken another course."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retinue.agents.model.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserMessage,
)
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    MessageStarted,
    ModelRequest,
    StreamEvent,
    TextDelta,
)
from retinue.agents.model.replay import RecordedAnswer, RecordedSide, ReplayModel

pytestmark = pytest.mark.asyncio

CALL = ToolUseBlock(id="c1", name="Read", input={"file_path": "x"})
ANSWERS = (
    RecordedAnswer((TextBlock(text="one"), CALL), Usage(input=3, output=4), "tool_use", asked_with=1),
    RecordedAnswer((TextBlock(text="two"),), Usage(output=1), "end_turn", asked_with=3),
)
GO = UserMessage(content=(TextBlock(text="go"),))
SAID = AssistantMessage(content=ANSWERS[0].blocks)
RESULT = UserMessage(content=(ToolResultBlock(tool_use_id="c1", content="x"),))


class Recorded:
    def __init__(self, answers: Sequence[RecordedAnswer]) -> None:
        self._answers = answers

    def answers(self, agent: str) -> Sequence[RecordedAnswer]:
        return self._answers if agent == "a" else ()

    def sides(self, agent: str) -> Sequence[RecordedSide]:
        return ()


async def answer(
    *messages: Message, agent: str = "a", answers: Sequence[RecordedAnswer] = ANSWERS
) -> list[StreamEvent]:
    request = ModelRequest(run="r", agent=agent, model="replay:r-0", system="", messages=messages)
    return [event async for event in ReplayModel(Recorded(answers), "r-0").stream(request)]


async def test_each_answer_comes_at_its_place_with_its_numbers():
    assert await answer(GO) == [
        MessageStarted(message_id="msg_a_1", model="replay:r-0"),
        TextDelta(text="one"),
        BlockDone(index=0, block=TextBlock(text="one")),
        BlockDone(index=1, block=CALL),
        MessageDone(stop_reason="tool_use", usage=Usage(input=3, output=4)),
    ]
    assert (await answer(GO, SAID, RESULT))[-1] == MessageDone(stop_reason="end_turn", usage=Usage(output=1))


async def test_an_answer_that_broke_then_is_given_whole_now():
    (*_, done) = await answer(GO, answers=[RecordedAnswer((CALL,))])
    assert done == MessageDone(stop_reason="tool_use", usage=Usage())


@pytest.mark.parametrize(
    ("messages", "agent", "reason", "said"),
    [
        ((GO,), "b", "not_found", "r-0, agent b: not in this recording"),
        ((GO, GO), "a", "expectation", "answer 1 was recorded after 1 messages, and this request has 2"),
        ((GO, SAID, RESULT, SAID, RESULT), "a", "expectation", "the recording has 2 answers"),
    ],
)
async def test_another_course_is_an_unmet_expectation(
    messages: tuple[Message, ...], agent: str, reason: str, said: str
):
    (broken,) = await answer(*messages, agent=agent)
    assert isinstance(broken, Broken)
    assert broken.reason == reason
    assert said in broken.message
