"""A conversation as a fold over records, and what a crash leaves of it."""

from __future__ import annotations

import pytest

from retinue.agents.history import Conversation, unpaired
from retinue.agents.model.messages import (
    AssistantBlock,
    AssistantMessage,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserMessage,
)
from retinue.agents.model.port import StopReason
from retinue.agents.records import (
    AgentRecord,
    AgentWaits,
    BlockComplete,
    MailStored,
    MessageClosed,
    MessageWithdrawn,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.agents.recovery import AskAgain, Complete, GoOn, Rest, recovery
from retinue.agents.turn import Spoken
from retinue.tools.base import AnyTool
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult
from retinue.tools.files.state import Seen
from support.agents_scene import World, mail, use

TOOLS: dict[str, AnyTool] = {tool.name: tool for tool in World().tools()}
SEEN = Seen(mtime_ns=1, size=2, digest="d")


def asked(text: str = "Go.", step: int = 1, turn: int = 1, mail_ids: tuple[str, ...] = ()) -> RequestSent:
    return RequestSent(turn=turn, step=step, mail=mail_ids, input=(TextBlock(text=text),) if text else ())


def blocks(*given: AssistantBlock, step: int = 1, turn: int = 1) -> list[AgentRecord]:
    return [BlockComplete(turn=turn, step=step, index=index, block=block) for index, block in enumerate(given)]


def closed(
    stop: StopReason | None = "tool_use", step: int = 1, turn: int = 1, usage: Usage | None = None
) -> MessageClosed:
    return MessageClosed(turn=turn, step=step, stop_reason=stop, usage=usage or Usage(input=5, output=1), model="m")


def started(call: str, tool: str = "Note", step: int = 1, *, read_only: bool = False) -> ToolStarted:
    return ToolStarted(turn=1, step=step, call_id=call, tool=tool, read_only=read_only)


def finished(call: str, content: str = "ok", step: int = 1, **more: object) -> ToolFinished:
    result = CallResult.model_validate({"call_id": call, "name": "Note", "content": content, **more})
    return ToolFinished(turn=1, step=step, result=result)


def done(step: int = 1, turn: int = 1) -> StepClosed:
    return StepClosed(turn=turn, step=step)


def fold(*records: AgentRecord | list[AgentRecord]) -> Conversation:
    flat = [r for each in records for r in (each if isinstance(each, list) else [each])]
    return Conversation.of(flat)


def user(*given: TextBlock | ToolResultBlock) -> UserMessage:
    return UserMessage(content=given)


# --- messages ---


def test_a_step_becomes_a_message_and_the_results_of_its_calls_in_their_order() -> None:
    one, two = use("Note", "a"), use("Look", "b")
    conversation = fold(
        asked(), blocks(one, two), closed(), finished("b", "second"), finished("a", "first", is_error=True), done()
    )
    assert conversation.messages() == (
        user(TextBlock(text="Go.")),
        AssistantMessage(content=(one, two)),
        user(
            ToolResultBlock(tool_use_id="a", content="first", is_error=True),
            ToolResultBlock(tool_use_id="b", content="second"),
        ),
    )


def test_what_a_tool_adds_and_new_mail_come_after_the_results_in_one_message() -> None:
    conversation = fold(
        asked(),
        blocks(use("Note", "a")),
        closed(),
        finished("a", new_messages=("by the way",)),
        done(),
        asked("mail", step=2),
    )
    assert [type(block) for block in conversation.messages()[-1].content] == [ToolResultBlock, TextBlock, TextBlock]
    assert unpaired([*conversation.messages(), AssistantMessage(content=())]) == []


def test_the_prefix_of_a_conversation_never_changes() -> None:
    records = [
        asked(),
        *blocks(use("Note", "a")),
        closed(),
        finished("a"),
        done(),
        asked("", step=2),
        *blocks(TextBlock(text="Done."), step=2),
        closed("end_turn", step=2),
        done(step=2),
        TurnClosed(turn=1, reason="done"),
        asked("More.", step=3, turn=2),
    ]
    conversation, before = Conversation(), ()
    for record in records:
        conversation.apply(record)
        if isinstance(record, RequestSent):
            assert conversation.messages()[: len(before)] == before
            before = conversation.messages()


def test_a_call_whose_result_was_lost_gets_an_error_in_its_place() -> None:
    conversation = fold(asked(), blocks(use("Note", "a")), closed(), done())
    (result,) = conversation.messages()[-1].content
    assert isinstance(result, ToolResultBlock)
    assert result.is_error
    assert "outcome is unknown" in result.content


def test_thoughts_go_back_as_they_came_but_never_alone() -> None:
    thought, hidden = ThinkingBlock(thinking="hm", signature="s"), RedactedThinkingBlock(data="x")
    whole = fold(asked(), blocks(thought, hidden, TextBlock(text="So.")), closed("end_turn"), done())
    assert whole.messages()[-1].content == (thought, hidden, TextBlock(text="So."))
    alone = fold(asked(), blocks(thought, TextBlock(text=" ")), closed("max_tokens"), done(), asked("go on", step=2))
    assert alone.messages() == (user(TextBlock(text="Go."), TextBlock(text="go on")),)


def test_a_refused_answer_is_forgotten_unless_its_calls_ran() -> None:
    forgotten = fold(asked(), blocks(TextBlock(text="I w")), closed("refusal"), done())
    assert [m.role for m in forgotten.messages()] == ["user"]
    ran = fold(asked(), blocks(use("Note", "a")), closed("refusal"), finished("a"), done())
    assert unpaired(ran.messages()) == []
    assert len(ran.messages()) == 3


def test_a_withdrawn_message_never_was() -> None:
    conversation = fold(
        asked(),
        blocks(TextBlock(text="half"), use("Look", "a")),
        MessageWithdrawn(turn=1, step=1, reason="dropped"),
        blocks(use("Look", "a")),
        closed(),
        finished("a"),
        done(),
    )
    assert conversation.messages()[1] == AssistantMessage(content=(use("Look", "a"),))
    assert conversation.requests == 1


# --- the rest of the state ---


def test_numbers_texts_and_totals_follow_the_records() -> None:
    used = Usage(input=5, output=1)
    conversation = fold(
        MailStored(envelope=mail("m1", "x")),
        asked(mail_ids=("m1",)),
        blocks(TextBlock(text="First."), use("Note", "a")),
        closed(usage=used),
        finished("a", seen={"/w/f": SEEN}),
        done(),
        AgentWaits(turn=1, what="for the model"),
        asked("", step=2),
        blocks(TextBlock(text="Last."), step=2),
        closed("end_turn", step=2, usage=used),
        done(step=2),
    )
    assert conversation.phase == "between"
    assert (conversation.turn, conversation.step, conversation.requests) == (1, 2, 2)
    assert conversation.usage == used + used
    assert conversation.last_usage == used
    assert conversation.last_text == "Last."
    assert conversation.spoken == Spoken("end_turn")
    assert conversation.seen == {"/w/f": SEEN}
    assert conversation.mailbox.unread == 0
    assert conversation.last_turn is None
    conversation.apply(TurnClosed(turn=1, reason="done", text="Last."))
    assert conversation.phase == "idle"
    assert conversation.last_turn == TurnClosed(turn=1, reason="done", text="Last.")


def test_messages_that_were_cut_off_are_counted_in_a_row() -> None:
    conversation = fold(
        asked(),
        blocks(TextBlock(text="a")),
        closed("max_tokens"),
        done(),
        asked("go on", step=2),
        blocks(TextBlock(text="b"), step=2),
        closed("max_tokens", step=2),
        done(step=2),
    )
    assert conversation.in_a_row == 2
    conversation.apply(TurnClosed(turn=1, reason="max_tokens"))
    conversation.apply(asked("new", step=3, turn=2))
    assert conversation.in_a_row == 0


def test_the_usage_of_a_request_is_settled_once() -> None:
    conversation = fold(asked(), blocks(TextBlock(text="a")), closed("end_turn"), done())
    assert conversation.last_usage.total == 6
    conversation.apply(TurnClosed(turn=1, reason="done"))
    conversation.apply(asked("x", step=2, turn=2))
    assert conversation.last_usage.total == 0


@pytest.mark.parametrize(
    "records",
    [
        [asked(step=2)],
        [asked(turn=2)],
        [asked(), asked(step=2)],
        [done()],
        [*blocks(TextBlock(text="x"))],
        [asked(), *blocks(TextBlock(text="x")), *blocks(TextBlock(text="y"))],
        [asked(), closed(), closed()],
        [asked(), closed(), *blocks(TextBlock(text="x"))],
        [asked(), closed(), MessageWithdrawn(turn=1, step=1, reason="")],
        [asked(), done()],
        [asked(), started("a")],
        [asked(), *blocks(use("Note", "a")), finished("a"), finished("a")],
        [asked(), *blocks(use("Note", "a")), TurnClosed(turn=1, reason="done")],
    ],
)
def test_records_that_cannot_be_are_refused(records: list[AgentRecord]) -> None:
    with pytest.raises(InvariantBroken):
        Conversation.of(records)


# --- what the model made up ---


def test_an_id_that_was_used_before_gets_another() -> None:
    conversation = fold(asked(), blocks(use("Note", "a")))
    fresh = conversation.acceptable(use("Note", "a", "x"))
    assert isinstance(fresh, ToolUseBlock)
    assert fresh.id != "a"
    assert fresh.input == {"text": "x"}


@pytest.mark.parametrize(
    ("identifier", "name"), [("", "Note"), ("a b/c", "Note"), ("x" * 500, "Note"), ("a", "no\nway")]
)
def test_ids_and_names_that_may_not_be_sent_back_are_mended(identifier: str, name: str) -> None:
    block = Conversation().acceptable(use(name, identifier))
    assert isinstance(block, ToolUseBlock)
    assert all(1 <= len(text) <= 128 and text.replace("_", "").isalnum() for text in (block.id, block.name))


def test_an_id_of_a_withdrawn_message_may_come_again() -> None:
    conversation = fold(asked(), blocks(use("Note", "a")), MessageWithdrawn(turn=1, step=1, reason=""))
    assert conversation.acceptable(use("Note", "a")) == use("Note", "a")


# --- after a crash ---

NOTE, LOOK, TELL, RUN = use("Note", "n"), use("Look", "l"), use("Tell", "t"), use("Run", "r")


def test_nothing_open_is_left_alone() -> None:
    assert recovery(Conversation(), TOOLS.get) == Rest()


def test_between_two_steps_the_usual_course_goes_on() -> None:
    assert recovery(fold(asked(), closed("end_turn"), done()), TOOLS.get) == GoOn()


@pytest.mark.parametrize("given", [[], blocks(TextBlock(text="half")), blocks(NOTE, LOOK)])
def test_an_open_message_without_a_started_call_is_asked_for_again(given: list[AgentRecord]) -> None:
    assert recovery(fold(asked(), given), TOOLS.get) == AskAgain()


def test_an_open_message_with_a_denied_call_only_is_asked_for_again() -> None:
    assert recovery(fold(asked(), blocks(NOTE), finished("n", denied=True)), TOOLS.get) == AskAgain()


def test_an_open_message_with_a_started_call_is_kept() -> None:
    found = recovery(fold(asked(), blocks(LOOK, NOTE), started("l", "Look", read_only=True)), TOOLS.get)
    assert found == Complete(close_message=True, answered=(), run=(LOOK, NOTE))


def test_calls_of_a_whole_message_that_never_started_run_now() -> None:
    found = recovery(fold(asked(), blocks(NOTE, RUN), closed()), TOOLS.get)
    assert found == Complete(close_message=False, answered=(), run=(NOTE, RUN))


def test_what_may_be_repeated_is_and_what_may_not_is_reported() -> None:
    found = recovery(
        fold(
            asked(),
            blocks(LOOK, TELL, NOTE),
            closed(),
            started("l", "Look", read_only=True),
            started("t", "Tell"),
            started("n"),
        ),
        TOOLS.get,
    )
    assert isinstance(found, Complete)
    assert found.run == (LOOK, TELL)
    (unknown,) = found.answered
    assert (unknown.call_id, unknown.is_error, unknown.ran) == ("n", True, True)
    assert "outcome unknown" in unknown.content


def test_finished_calls_keep_their_results() -> None:
    found = recovery(fold(asked(), blocks(NOTE, LOOK), closed(), started("n"), finished("n")), TOOLS.get)
    assert found == Complete(close_message=False, answered=(), run=(LOOK,))


def test_a_group_that_failed_stays_failed() -> None:
    failed = finished("r", is_error=True, fails_group=True)
    found = recovery(fold(asked(), blocks(RUN, NOTE), closed(), started("r", "Run"), failed), TOOLS.get)
    assert isinstance(found, Complete)
    assert found.run == ()
    assert [result.content for result in found.answered] == ["Not run: Note (r) of the same message failed."]


def test_after_a_command_with_an_unknown_outcome_nothing_else_of_its_group_runs() -> None:
    records = [asked(), *blocks(RUN, NOTE), closed(), started("r", "Run")]
    found = recovery(fold(records), TOOLS.get)
    assert isinstance(found, Complete)
    assert found.run == ()
    assert [result.call_id for result in found.answered] == ["r", "n"]
    first = ToolFinished(turn=1, step=1, result=found.answered[0])
    again = recovery(fold(records, first), TOOLS.get)
    assert isinstance(again, Complete)
    assert (again.run, [result.call_id for result in again.answered]) == ((), ["n"])


def test_a_call_of_a_tool_that_is_gone_is_never_run_again() -> None:
    found = recovery(fold(asked(), blocks(NOTE), closed(), started("n")), lambda name: None)
    assert isinstance(found, Complete)
    assert [result.call_id for result in found.answered] == ["n"]
