"""Laws of the lane and of the executor around it, for any mix of events."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retinue.tools.base import Traits
from retinue.tools.execution.batches import partition
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.lane import (
    Aborted,
    Cancel,
    EffectBegun,
    Emit,
    Event,
    Finished,
    Lane,
    SettleExpired,
    Start,
    Status,
    StreamEnded,
    Submitted,
    Withdrawn,
)
from retinue.tools.execution.streaming import StreamingExecutor, run_all
from support.calls import SAFE, UNSAFE, Scripted, context, result, settle

CAP = 3


class LaneLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane(CAP)
        self.asked: list[str] = []
        self.traits: dict[str, Traits] = {}
        self.emitted: list[CallResult] = []
        self.started: list[str] = []
        self.cancelled: set[str] = set()
        self.begun: set[str] = set()
        self.open = True

    def feed(self, event: Event) -> None:
        for effect in self.lane.handle(event):
            match effect:
                case Start(call):
                    assert not self.lane.closed
                    self.started.append(call)
                case Cancel(call):
                    assert call not in self.cancelled
                    self.cancelled.add(call)
                case Emit(end):
                    self.emitted.append(end)

    @precondition(lambda self: self.open)
    @rule(safe=st.booleans())
    def submit(self, safe: bool) -> None:
        call = f"c{len(self.asked)}"
        self.asked.append(call)
        self.traits[call] = SAFE if safe else UNSAFE
        self.feed(Submitted(call, "T", self.traits[call]))

    @precondition(lambda self: self.lane.executing())
    @rule(data=st.data(), fails=st.booleans(), has_result=st.booleans())
    def finish(self, data: st.DataObject, fails: bool, has_result: bool) -> None:
        call = data.draw(st.sampled_from(self.lane.executing()))
        self.feed(Finished(call, result(call, fails=fails) if has_result else None))

    @precondition(lambda self: self.lane.executing() and not self.lane.closed)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.lane.executing()))
        self.begun.add(call)
        self.feed(EffectBegun(call))

    @precondition(lambda self: self.cancelled)
    @rule(data=st.data())
    def report_late(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(sorted(self.cancelled)))
        self.feed(Finished(call, result(call)))

    @rule()
    def abort(self) -> None:
        self.feed(Aborted("stop"))

    @rule()
    def give_up(self) -> None:
        self.feed(SettleExpired())

    @precondition(lambda self: self.lane.may_withdraw)
    @rule()
    def withdraw(self) -> None:
        assert not self.begun
        self.open = False
        self.feed(Withdrawn())

    @rule()
    def end_stream(self) -> None:
        self.open = False
        self.feed(StreamEnded())

    @invariant()
    def an_unsafe_call_runs_alone_and_the_cap_holds(self) -> None:
        live = self.lane.executing()
        assert len(live) <= CAP
        assert len(live) < 2 or all(self.traits[call].concurrency_safe for call in live)

    @invariant()
    def results_leave_once_and_in_order(self) -> None:
        assert [end.call_id for end in self.emitted] == self.asked[: len(self.emitted)]

    @invariant()
    def calls_start_in_order(self) -> None:
        assert self.started == self.asked[: len(self.started)]

    @invariant()
    def the_lane_never_stalls(self) -> None:
        waiting = any(self.lane.status(call) is Status.QUEUED for call in self.asked)
        assert not waiting or self.lane.executing()

    @invariant()
    def what_never_began_says_that_it_did_not_run(self) -> None:
        for end in self.emitted:
            if end.error_class:
                assert end.ran == (end.call_id in self.begun)

    def teardown(self) -> None:
        self.feed(StreamEnded())
        self.feed(Aborted("the end"))
        self.feed(SettleExpired())
        assert self.lane.finished
        assert [end.call_id for end in self.emitted] == self.asked


TestLaneLaws = LaneLaws.TestCase


@given(st.permutations(range(8)), st.lists(st.booleans(), min_size=8, max_size=8), st.integers(1, 10))
def test_order_of_emission_is_the_order_of_calls_for_any_order_of_completion(
    completion: list[int], safe: list[bool], cap: int
) -> None:
    lane = Lane(cap)
    effects = [e for i in range(8) for e in lane.handle(Submitted(f"c{i}", "T", SAFE if safe[i] else UNSAFE))]
    while lane.executing():
        call = min(lane.executing(), key=lambda c: completion.index(int(c[1:])))
        effects += lane.handle(Finished(call, result(call)))
    assert [e.result.call_id for e in effects if isinstance(e, Emit)] == [f"c{i}" for i in range(8)]


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 10), st.randoms(use_true_random=False))
def test_what_runs_at_once_in_a_lane_is_always_of_one_batch(safe: list[bool], cap: int, random: object) -> None:
    calls = [ToolCall(id=str(i), name="T") for i in range(len(safe))]
    traits = {call.id: SAFE if is_safe else UNSAFE for call, is_safe in zip(calls, safe, strict=True)}
    batches = partition(calls, lambda call: traits[call.id])
    batch_of = {call.id: batch for batch in batches for call in batch.calls}
    assert [call for batch in batches for call in batch.calls] == calls
    lane = Lane(cap)
    for call in calls:
        lane.handle(Submitted(call.id, "T", traits[call.id]))
    while live := lane.executing():
        together = {id(batch_of[call]) for call in live}
        assert len(together) == 1
        assert len(live) <= batch_of[live[0]].width(cap)
        lane.handle(Finished(random.choice(live), result(live[0])))  # type: ignore[attr-defined]


STEPS = st.one_of(
    st.tuples(st.just("submit"), st.booleans()),
    st.tuples(st.just("end"), st.integers(0, 5)),
    st.tuples(st.just("fail"), st.integers(0, 5)),
    st.tuples(st.just("abort"), st.just(0)),
    st.tuples(st.just("withdraw"), st.just(0)),
    st.tuples(st.just("wait"), st.just(0)),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=25), st.booleans(), st.sets(st.integers(0, 5)))
def test_every_submitted_call_gets_exactly_one_result_whatever_happens(
    steps: list[tuple[str, int]], begins: bool, deaf: set[int]
) -> None:
    async def scene() -> tuple[list[str], list[str]]:
        runner = Scripted(begins=begins, ignores=frozenset(f"c{i}" for i in deaf))
        executor = StreamingExecutor(runner, context(), cap=CAP, settle_s=0.001)
        before = asyncio.all_tasks()
        asked: list[str] = []
        for what, value in steps:
            if not await _step(executor, runner, asked, what, value):
                break
        results = await executor.close("the end")
        for ending in runner.running.values():
            ending.cancel()
        await settle()
        assert asyncio.all_tasks() == before
        return asked, [end.call_id for end in results]

    asked, answered = asyncio.run(scene())
    assert answered == asked


async def _step(executor: StreamingExecutor, runner: Scripted, asked: list[str], what: str, value: int) -> bool:
    """False when the message is over."""
    live = [call for call, ending in runner.running.items() if not ending.done()]
    match what:
        case "submit":
            call = f"c{len(asked)}"
            asked.append(call)
            runner.traits[call] = SAFE if value else UNSAFE
            executor.submit(ToolCall(id=call, name="T"))
        case "end" | "fail" if live:
            runner.end(live[value % len(live)], fails=what == "fail")
        case "abort":
            executor.abort("stop")
        case "withdraw":
            return not executor.withdraw()
        case _:
            await settle(5)
    return True


def test_an_empty_message_has_no_results() -> None:
    assert asyncio.run(run_all(Scripted(), context(), []))[0] == ()
