"""An agent at work: what it asks, records and tells, and that it can be stopped in any way at any time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from retinue.agents.assemble import Watch
from retinue.agents.boot import AgentLimits, AgentStatus
from retinue.agents.history import Conversation, unpaired
from retinue.agents.loop import AgentLoop
from retinue.agents.mail.envelopes import ShutdownRequest
from retinue.agents.model.messages import TextBlock, ToolResultBlock, ToolUseBlock, Usage
from retinue.agents.model.port import Broken, ModelRequest, StreamEvent, TextDelta
from retinue.agents.ports import Reservation
from retinue.agents.records import AgentRecord, MessageClosed, MessageWithdrawn, RequestSent, TurnClosed
from retinue.agents.steps import Timing
from retinue.agents.turn import RetryPolicy
from retinue.tools.errors import EnvironmentProblem
from support.agents_scene import (
    Answers,
    Scene,
    a_boot,
    answer,
    broken,
    human,
    mail,
    no_time,
    prompt,
    until_idle,
    use,
)

DROPPED = Broken(reason="dropped", message="gone")


def scene_of(*answers: list[StreamEvent], **boot: object) -> Scene:
    return Scene(Answers(list(answers)), boot=a_boot(**boot)).stored(prompt())


def requests(scene: Scene) -> list[ModelRequest]:
    assert isinstance(scene.model, Answers)
    return scene.model.requests


def only(scene: Scene, kind: type[AgentRecord]) -> list[AgentRecord]:
    return [record for record in scene.ledger.records if isinstance(record, kind)]


def last_turn(scene: Scene) -> TurnClosed:
    last = Conversation.of(scene.ledger.records).last_turn
    assert last is not None
    return last


def results(request: ModelRequest) -> list[ToolResultBlock]:
    return [block for block in request.messages[-1].content if isinstance(block, ToolResultBlock)]


def texts(request: ModelRequest) -> list[str]:
    return [block.text for block in request.messages[-1].content if isinstance(block, TextBlock)]


def when(scene: Scene, met: Callable[[AgentStatus], bool]) -> asyncio.Event:
    event = asyncio.Event()

    def look(status: AgentStatus) -> None:
        if met(status):
            event.set()

    scene.board.on = look
    return event


def begun(scene: Scene, text: str) -> asyncio.Event:
    """Set once the call with this text is at work; it waits there until its gate opens."""
    scene.world.gates.setdefault(text, asyncio.Event())
    return scene.world.begun.setdefault(text, asyncio.Event())


# --- the usual course ---


async def test_a_turn_is_recorded_in_the_order_in_which_it_happens() -> None:
    scene = scene_of(answer("I look.", use("Look", "t1", "a")), answer("Done."))
    await until_idle(scene)
    kinds = scene.kinds()
    assert kinds[:4] == ["mail_stored", "request", "block", "block"]
    assert sorted(kinds[4:7]) == ["message_closed", "tool_finished", "tool_started"]
    assert kinds.index("tool_started") < kinds.index("tool_finished")
    assert kinds[7:] == ["step_closed", "request", "block", "message_closed", "step_closed", "turn_closed"]
    assert last_turn(scene) == TurnClosed(turn=1, reason="done", text="Done.")
    assert scene.ledger.synced == len(scene.ledger.records)


async def test_the_request_carries_the_whole_conversation_and_a_stable_prefix() -> None:
    scene = scene_of(answer("I look.", use("Look", "t1", "a")), answer("Done."))
    await until_idle(scene)
    first, second = requests(scene)
    assert second.messages[: len(first.messages)] == first.messages
    assert (first.system, first.tools) == (second.system, second.tools)
    assert [tool.name for tool in first.tools] == ["Look", "Note", "Run", "Tell"]
    assert results(second) == [ToolResultBlock(tool_use_id="t1", content="seen a")]


async def test_calls_start_while_the_model_still_speaks() -> None:
    scene = scene_of(answer("I look.", use("Look", "t1", "a")), answer("Done."))
    model = scene.model
    assert isinstance(model, Answers)
    model.hold = asyncio.Event()
    looked = scene.world.begun.setdefault("a", asyncio.Event())
    running = asyncio.create_task(until_idle(scene))
    await looked.wait()
    assert "message_closed" not in scene.kinds()
    model.hold.set()
    await running


async def test_mail_that_comes_during_a_step_is_taken_with_the_next() -> None:
    scene = scene_of(answer("I look.", use("Look", "t1", "a")), answer("Done."))
    looked = begun(scene, "a")
    agent = scene.agent()
    running = asyncio.create_task(until_idle(scene, agent))
    await looked.wait()
    assert (await agent.deliver(mail("m1", "news"))).outcome == "stored"
    scene.world.gates["a"].set()
    await running
    assert "news" in texts(requests(scene)[1])[0]
    assert [r.mail for r in only(scene, RequestSent)] == [("p",), ("m1",)]  # type: ignore[union-attr]


async def test_mail_wakes_an_idle_agent() -> None:
    scene = scene_of(answer("Done."), answer("Done again."))
    idle = when(scene, lambda status: status.state == "idle")
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await idle.wait()
    idle.clear()
    await agent.deliver(human("m1", "More."))
    await idle.wait()
    await agent.drain()
    await running
    assert [message.role for message in requests(scene)[1].messages] == ["user", "assistant", "user"]
    assert last_turn(scene).turn == 2


async def test_a_delivery_is_durable_before_it_is_acknowledged() -> None:
    scene = scene_of()
    agent = scene.agent()
    receipt = await agent.deliver(mail("m1", "x"))
    assert receipt.outcome == "stored"
    assert scene.ledger.synced == len(scene.ledger.records) == 2
    assert (await agent.deliver(mail("m1", "x"))).outcome == "duplicate"
    assert len(scene.ledger.records) == 2


async def test_the_same_message_delivered_twice_at_once_is_stored_once() -> None:
    scene = scene_of()
    agent = scene.agent()
    receipts = await asyncio.gather(*(agent.deliver(mail("m1", "x")) for _ in range(5)))
    assert sorted(r.outcome for r in receipts) == ["duplicate"] * 4 + ["stored"]
    assert len(scene.ledger.records) == 2


async def test_mail_for_somebody_else_is_not_taken() -> None:
    scene = scene_of()
    receipt = await scene.agent().deliver(mail("m1", "x", recipient="ada~2"))
    assert receipt.outcome == "no_such_agent"
    assert len(scene.ledger.records) == 1


async def test_a_checkpoint_is_taken_after_a_step_that_changed_something_only() -> None:
    scene = scene_of(answer(use("Look", "t1", "a")), answer(use("Note", "t2", "b")), answer("Done."))
    await until_idle(scene)
    closed = [r.model_dump()["checkpoint"] for r in scene.ledger.records if r.kind == "step_closed"]
    assert closed == [None, "sha1", None]


async def test_a_failed_command_fails_its_group() -> None:
    scene = scene_of(answer(use("Run", "t1", "bad"), use("Note", "t2", "never")), answer("Done."))
    await until_idle(scene)
    first, second = results(requests(scene)[1])
    assert first.is_error
    assert second.is_error
    assert second.content.startswith("Not run")
    assert [text for _, text in scene.world.notes] == ["run bad"]


async def test_a_call_that_runs_alone_starts_after_the_end_of_the_one_before_is_recorded() -> None:
    scene = scene_of(answer(use("Note", "t1", "a"), use("Note", "t2", "b")), answer("Done."))
    append = scene.ledger.append

    async def slow(*records: AgentRecord) -> None:
        if records[0].kind == "tool_finished":
            for _ in range(50):
                await asyncio.sleep(0)
        await append(*records)

    scene.ledger.append = slow  # type: ignore[method-assign]
    await until_idle(scene)
    marks = [kind for kind in scene.kinds() if kind.startswith("tool_")]
    assert marks == ["tool_started", "tool_finished"] * 2


async def test_ids_that_the_model_uses_again_are_made_different() -> None:
    scene = scene_of(answer(use("Note", "call_0", "a")), answer(use("Note", "call_0", "b")), answer("Done."))
    await until_idle(scene)
    calls = [b for m in requests(scene)[-1].messages for b in m.content if isinstance(b, ToolUseBlock)]
    assert len({call.id for call in calls}) == 2
    assert len({key for key, _ in scene.world.notes}) == 2
    assert unpaired(requests(scene)[-1].messages) == []


async def test_a_malformed_call_is_answered_with_an_error() -> None:
    bad = ToolUseBlock(id="t1", name="Look", malformed='{"text": "a')
    scene = scene_of(answer(bad, use("Nothing", "t2")), answer("Done."))
    await until_idle(scene)
    assert [result.is_error for result in results(requests(scene)[1])] == [True, True]
    assert scene.world.looks == []


async def test_people_who_watch_get_the_text_as_it_comes() -> None:
    seen: list[str] = []
    scene = scene_of([TextDelta(text="Do"), TextDelta(text="ne."), *answer("Done.")])
    scene.watch = Watch(text=seen.append)
    await until_idle(scene)
    assert seen == ["Do", "ne."]


async def test_of_the_results_of_one_message_the_largest_are_put_aside_until_all_fit(tmp_path: Path) -> None:
    sizes = (45_000, 30_000, 44_000, 30_000, 30_000, 40_000)
    calls = [use("Look", f"t{n}", str(n) * size) for n, size in enumerate(sizes)]
    scene = scene_of(answer(*calls), answer("Done."), run_dir=str(tmp_path))
    await until_idle(scene)
    found = results(requests(scene)[1])
    assert sum(len(result.content) for result in found) <= 200_000
    assert [("<persisted-output>" in result.content) for result in found] == [True] + [False] * 5
    assert "0" * 45_000 in (tmp_path / "tool-results" / "ada~1" / "t0.txt").read_text()
    again = Conversation.of(scene.ledger.records).messages()[2]
    assert [block for block in again.content if isinstance(block, ToolResultBlock)] == found


async def test_a_message_that_is_too_long_lies_whole_in_a_file_that_the_agent_may_read(tmp_path: Path) -> None:
    scene = scene_of(answer("Done."), answer("Read."), run_dir=str(tmp_path)).stored(mail("long", "x" * 200_000))
    await until_idle(scene)
    file = tmp_path / "tool-results" / "ada~1" / "mail-long.txt"
    assert "x" * 200_000 in file.read_text()
    assert any(str(file) in text for request in requests(scene) for text in texts(request))


# --- the end of a turn ---


async def test_what_was_cut_off_is_gone_on_with_and_gets_more_room() -> None:
    scene = scene_of(answer("Once upon", stop="max_tokens"), answer("a time.", stop="max_tokens"), answer("End."))
    await until_idle(scene)
    assert [request.max_tokens for request in requests(scene)] == [8_000, 16_000, 32_000]
    assert "Go on exactly" in texts(requests(scene)[1])[0]
    assert last_turn(scene).text == "End."


async def test_a_server_that_refuses_more_room_is_asked_for_the_usual() -> None:
    no = Broken(reason="invalid_request", message="max_tokens is too large")
    scene = scene_of(answer("Once", stop="max_tokens"), broken(by=no), answer("End."))
    await until_idle(scene)
    assert [request.max_tokens for request in requests(scene)] == [8_000, 16_000, 8_000]
    assert last_turn(scene).reason == "done"


async def test_a_refusal_ends_the_turn_and_leaves_no_trace_in_the_conversation() -> None:
    scene = scene_of(answer("I will n", stop="refusal"), answer("Yes."))
    await until_idle(scene)
    assert last_turn(scene).reason == "refusal"
    assert [m.role for m in Conversation.of(scene.ledger.records).messages()] == ["user"]


async def test_a_request_to_end_lets_the_turn_finish_and_ends_the_agent() -> None:
    scene = scene_of(answer(use("Look", "t1", "a")), answer("Safe now."))
    agent, running = await working(scene, "a")
    await agent.deliver(mail("end", ShutdownRequest(reason="all is done")))
    scene.world.gates["a"].set()
    last = await running
    assert "You are asked to end. Reason: all is done" in texts(requests(scene)[1])[0]
    assert last == TurnClosed(turn=1, reason="shutdown", text="Safe now.")
    assert scene.board.states()[-1] == "stopped"


async def test_an_idle_agent_ends_at_once_when_it_is_asked_to() -> None:
    scene = scene_of(answer("Done."))
    idle = when(scene, lambda status: status.state == "idle")
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await idle.wait()
    await agent.deliver(mail("end", ShutdownRequest()))
    assert (await running) == TurnClosed(turn=2, reason="shutdown")
    assert len(requests(scene)) == 1
    assert (await agent.deliver(mail("late", "x"))).outcome == "no_such_agent"
    assert await scene.agent().run() == TurnClosed(turn=2, reason="shutdown")


async def test_a_sub_agent_ends_with_its_first_turn_and_again_when_asked_again() -> None:
    scene = scene_of(answer("The answer is 7."), role="child", parent="bob~1")
    last = await scene.agent().run()
    assert last is not None
    assert last.text == "The answer is 7."
    assert await scene.agent().run() == last
    assert len(requests(scene)) == 1


# --- models that break ---


async def test_a_stream_that_breaks_before_any_call_started_is_withdrawn_and_asked_again() -> None:
    scene = scene_of(broken(TextBlock(text="half"), by=DROPPED), answer("Done."))
    await until_idle(scene)
    first, second = requests(scene)
    assert first.messages == second.messages
    assert (first.attempt, second.attempt) == (0, 1)
    assert len(only(scene, MessageWithdrawn)) == 1
    assert "waiting" in scene.board.states()


async def test_a_stream_that_breaks_after_a_call_started_keeps_what_is_complete() -> None:
    scene = scene_of(broken(TextBlock(text="I note."), use("Note", "t1", "a"), by=DROPPED), answer("Done."))
    model = scene.model
    assert isinstance(model, Answers)
    model.hold = asyncio.Event()
    noted = scene.world.begun.setdefault("a", asyncio.Event())
    running = asyncio.create_task(until_idle(scene))
    await noted.wait()
    model.hold.set()
    await running
    assert only(scene, MessageWithdrawn) == []
    assert [r.stop_reason for r in only(scene, MessageClosed)] == [None, "end_turn"]  # type: ignore[union-attr]
    assert results(requests(scene)[1]) == [ToolResultBlock(tool_use_id="t1", content="noted a")]
    assert len(scene.world.notes) == 1


async def test_a_model_that_stays_away_ends_the_turn_after_all_attempts() -> None:
    scene = scene_of(*(broken(by=DROPPED) for _ in range(3)))
    scene.timing = Timing(clock=lambda: 0.0, sleep=no_time, chance=lambda: 0.0, retries=RetryPolicy(attempts=3))
    await until_idle(scene)
    assert last_turn(scene).reason == "model_error"
    assert "after 3 attempts" in last_turn(scene).detail
    assert scene.board.told[-2].state == "failed"
    assert [message.role for message in Conversation.of(scene.ledger.records).messages()] == ["user"]


async def test_an_agent_whose_model_failed_goes_on_with_its_next_mail() -> None:
    no = Broken(reason="authentication", message="no key")
    scene = scene_of(broken(by=no), answer("Done."))
    await until_idle(scene)
    agent = scene.agent()
    await agent.deliver(human("m1", "Again."))
    await until_idle(scene, agent)
    assert last_turn(scene).reason == "done"
    assert texts(requests(scene)[1]) == ["Go.", "Again."]


async def test_a_script_that_expected_something_else_is_told_as_that() -> None:
    scene = scene_of(broken(by=Broken(reason="expectation", message="came instead: x")))
    await until_idle(scene)
    assert last_turn(scene) == TurnClosed(turn=1, reason="expectation", detail="came instead: x")


async def test_a_stream_without_an_end_counts_as_broken() -> None:
    scene = scene_of(answer("half")[:-1], answer("Done."))
    await until_idle(scene)
    assert last_turn(scene).text == "Done."
    assert len(only(scene, MessageWithdrawn)) == 1


# --- limits and budgets ---


async def test_every_request_is_reserved_and_settles_the_one_before() -> None:
    used = Usage(input=100, output=7)
    scene = scene_of(answer(use("Look", "t1", "a"), usage=used), answer("Done."))
    await until_idle(scene)
    assert [(step, settled) for step, _, settled in scene.purse.asked] == [(1, Usage()), (2, used)]
    assert scene.purse.asked[1][1] >= 107 + 8_000


async def test_a_refused_budget_ends_the_turn_with_its_reason_and_leaves_the_mail_unread() -> None:
    scene = scene_of(answer("Done."))
    scene.purse.refusals = ["the run has used its 5 USD"]
    await until_idle(scene)
    assert last_turn(scene) == TurnClosed(turn=1, reason="limit", detail="the run has used its 5 USD")
    assert scene.board.told[-2].state == "failed"
    assert requests(scene) == []
    assert Conversation.of(scene.ledger.records).mailbox.unread == 1


async def test_new_mail_makes_an_agent_at_its_limit_ask_again_and_it_says_so_once() -> None:
    scene = scene_of(answer("Done."))
    scene.purse.refusals = ["no", "no"]
    failed = when(scene, lambda status: status.state == "failed")
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await failed.wait()
    failed.clear()
    await agent.deliver(mail("m1", "x"))
    await failed.wait()
    assert len(only(scene, TurnClosed)) == 1
    idle = when(scene, lambda status: status.state == "idle")
    await agent.deliver(mail("m2", "y"))
    await idle.wait()
    await agent.drain()
    await running
    assert len(texts(requests(scene)[0])) == 3


async def test_an_agent_ends_its_turn_when_its_own_requests_are_used_up() -> None:
    scene = scene_of(answer(use("Look", "t1", "a")), limits=AgentLimits(requests=1))
    await until_idle(scene)
    assert last_turn(scene).reason == "limit"
    assert unpaired([*Conversation.of(scene.ledger.records).messages()]) == []


async def test_a_budget_that_cannot_be_asked_is_waited_for_visibly() -> None:
    scene = scene_of(answer("Done."))

    class Away:
        left = 2

        async def reserve(self, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
            self.left -= 1
            if self.left >= 0:
                raise EnvironmentProblem("the team is away")
            return Reservation(ok=True)

    scene.purse = Away()  # type: ignore[assignment]
    await until_idle(scene)
    assert last_turn(scene).reason == "done"
    assert "for its budget: the team is away" in [status.detail for status in scene.board.told]


# --- a full disk ---


async def test_a_full_disk_is_waited_out_visibly_and_no_unsafe_call_starts_before() -> None:
    scene = scene_of(answer(use("Note", "t1", "a")), answer("Done."))
    waits = asyncio.Event()
    goes_on = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.set()
        await goes_on.wait()

    scene.timing = Timing(clock=lambda: 0.0, sleep=sleep, chance=lambda: 0.0)
    append = scene.ledger.append

    async def full(*records: AgentRecord) -> None:
        if records[0].kind == "tool_started" and not waits.is_set():
            raise EnvironmentProblem("disk full")
        await append(*records)

    scene.ledger.append = full  # type: ignore[method-assign]
    agent = scene.agent()
    running = asyncio.create_task(until_idle(scene, agent))
    await waits.wait()
    assert agent.status().state == "waiting"
    assert agent.status().detail == "blocked: disk full"
    assert scene.world.notes == []
    goes_on.set()
    await running
    assert [text for _, text in scene.world.notes] == ["a"]


async def test_mail_is_refused_while_the_disk_is_full_and_can_be_sent_again() -> None:
    scene = scene_of()
    agent = scene.agent()
    scene.ledger.troubles = [EnvironmentProblem("disk full")]
    receipt = await agent.deliver(mail("m1", "x"))
    assert (receipt.outcome, receipt.text) == ("failed", "disk full")
    assert (await agent.deliver(mail("m1", "x"))).outcome == "stored"


# --- stopping ---


async def working(scene: Scene, text: str) -> tuple[AgentLoop, asyncio.Task[TurnClosed | None]]:
    at_work = begun(scene, text)
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await at_work.wait()
    return agent, running


async def test_draining_finishes_the_step_in_flight_and_can_be_gone_on_with() -> None:
    scene = scene_of(answer(use("Note", "t1", "a")), answer("Done."))
    agent, running = await working(scene, "a")
    draining = asyncio.create_task(agent.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    scene.world.gates["a"].set()
    await draining
    assert await running is None
    assert scene.kinds()[-1] == "step_closed"
    await until_idle(scene)
    assert last_turn(scene).text == "Done."
    assert len(scene.world.notes) == 1


async def test_draining_does_not_wait_for_a_model_that_is_away() -> None:
    scene = scene_of(broken(by=DROPPED), answer("Done."))

    async def for_ever(seconds: float) -> None:
        await asyncio.Event().wait()

    scene.timing = Timing(clock=lambda: 0.0, sleep=for_ever, chance=lambda: 0.0)
    waiting = when(scene, lambda status: status.state == "waiting")
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await waiting.wait()
    await agent.drain()
    await running
    scene.timing = Timing(clock=lambda: 0.0, sleep=no_time, chance=lambda: 0.0)
    await until_idle(scene)
    assert last_turn(scene).text == "Done."
    assert [r.mail for r in only(scene, RequestSent)] == [("p",)]  # type: ignore[union-attr]


async def test_an_interruption_gives_every_call_a_result_and_leaves_the_agent_ready() -> None:
    scene = scene_of(
        answer("I note.", use("Note", "t1", "a"), use("Note", "t2", "b"), use("Look", "t3", "c")), answer("Yes.")
    )
    agent, running = await working(scene, "a")
    await scene.ledger.has("message_closed")
    await agent.interrupt("the human wants it")
    idle = when(scene, lambda status: status.state == "idle" and status.turn == 2)
    await agent.deliver(human("m1", "Go on."))
    await idle.wait()
    await agent.drain()
    await running
    turns = only(scene, TurnClosed)
    assert [(t.reason, t.detail) for t in turns] == [("stopped", "the human wants it"), ("done", "")]  # type: ignore[union-attr]
    found = results(requests(scene)[1])
    assert [result.is_error for result in found] == [True, True, True]
    assert "outcome unknown: the work was called off (the human wants it)" in found[0].content
    assert found[1].content.startswith("Not run")
    assert scene.world.notes == []


async def test_an_interruption_while_the_model_speaks_keeps_what_was_said() -> None:
    scene = scene_of(answer("I think that", "more"), answer("Yes."))
    model = scene.model
    assert isinstance(model, Answers)
    model.hold = asyncio.Event()
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await scene.ledger.has("block")
    await agent.interrupt("enough")
    await agent.drain()
    await running
    assert [message.role for message in Conversation.of(scene.ledger.records).messages()] == ["user", "assistant"]
    assert last_turn(scene).reason == "stopped"


async def test_an_interruption_before_the_model_spoke_withdraws_the_request() -> None:
    scene = scene_of([], answer("Yes."))
    asked = asyncio.Event()
    answers = scene.model.stream

    async def silent(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        asked.set()
        await asyncio.Event().wait()
        async for event in answers(request):
            yield event

    scene.model.stream = silent  # type: ignore[method-assign]
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await asked.wait()
    await agent.interrupt("enough")
    await agent.drain()
    await running
    assert scene.kinds()[-2:] == ["message_withdrawn", "turn_closed"]


async def test_interrupting_an_idle_agent_does_nothing() -> None:
    scene = scene_of(answer("Done."))
    idle = when(scene, lambda status: status.state == "idle")
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    await idle.wait()
    before = len(scene.ledger.records)
    await agent.interrupt("why not")
    assert len(scene.ledger.records) == before
    await agent.drain()
    await running


async def test_mail_that_waits_during_an_interruption_begins_the_next_turn_by_itself() -> None:
    scene = scene_of(answer(use("Note", "t1", "a")), answer("Yes."))
    agent, running = await working(scene, "a")
    await agent.deliver(mail("m1", "news"))
    idle = when(scene, lambda status: status.state == "idle")
    await agent.interrupt("enough")
    await idle.wait()
    await agent.drain()
    await running
    assert len(requests(scene)) == 2
    assert last_turn(scene).text == "Yes."


async def test_stopping_interrupts_and_ends() -> None:
    scene = scene_of(answer(use("Note", "t1", "a")))
    agent, running = await working(scene, "a")
    await agent.stop("down")
    last = await running
    assert last is not None
    assert (last.reason, last.detail) == ("stopped", "down")
    assert scene.board.states()[-1] == "stopped"


@pytest.mark.parametrize("rounds", range(0, 60, 2))
async def test_an_interruption_at_any_moment_leaves_a_whole_conversation(rounds: int) -> None:
    scene = scene_of(
        answer("I note.", use("Look", "t1", "a"), use("Note", "t2", "b"), use("Tell", "t3", "c")),
        answer("Done."),
        answer("Again."),
        answer("Again."),
    )
    agent = scene.agent()
    running = asyncio.create_task(agent.run())
    for _ in range(rounds):
        await asyncio.sleep(0)
    await agent.interrupt("now")
    await agent.deliver(human("m1", "And?"))
    await until_read(scene, agent)
    await agent.drain()
    await running
    conversation = Conversation.of(scene.ledger.records)
    assert unpaired([*conversation.messages()]) == []
    assert conversation.phase == "idle"
    assert len(scene.world.notes) <= 1
    processed = [name for r in only(scene, RequestSent) for name in r.mail]  # type: ignore[union-attr]
    assert sorted(processed) == ["m1", "p"]


async def until_read(scene: Scene, agent: AgentLoop) -> None:
    rested = when(scene, lambda status: status.state == "idle" and status.unread == 0)
    if agent.status().state == "idle" and agent.status().unread == 0:
        return
    await rested.wait()


async def test_when_an_interruption_returns_the_turn_is_closed() -> None:
    scene = scene_of(answer(use("Note", "t1", "a")))
    agent, running = await working(scene, "a")
    await agent.interrupt("enough")
    assert scene.kinds()[-1] == "turn_closed"
    await agent.drain()
    await running


async def test_an_agent_never_looks_at_rest_between_taking_mail_and_working_on_it() -> None:
    scene = scene_of(answer("Done."), answer("Again."))
    looks: list[tuple[str, int, bool]] = []
    idle = when(scene, lambda status: status.state == "idle")
    agent = scene.agent()
    append, sync = scene.ledger.append, scene.ledger.sync

    async def looking(*records: AgentRecord) -> None:
        await append(*records)
        look()

    async def looking_sync() -> None:
        look()
        await sync()

    def look() -> None:
        status = agent.status()
        open_turn = Conversation.of(scene.ledger.records).turn_open
        looks.append((status.state, status.unread, open_turn))

    scene.ledger.append, scene.ledger.sync = looking, looking_sync  # type: ignore[method-assign]
    running = asyncio.create_task(agent.run())
    await idle.wait()
    idle.clear()
    await agent.deliver(human("m1", "More."))
    await idle.wait()
    await agent.drain()
    await running
    assert [look for look in looks if look[0] == "idle" and look[1] == 0 and look[2]] == []
    assert len(looks) > 10
