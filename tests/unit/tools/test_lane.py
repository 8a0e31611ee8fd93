"""The lane: which calls of a message run, and in which order their results leave."""

from __future__ import annotations

import pytest

from retinue.tools.base import Traits
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.batches import Batch, partition
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.lane import (
    Aborted,
    Cancel,
    Effect,
    EffectBegun,
    Emit,
    Finished,
    Lane,
    SettleExpired,
    Start,
    Status,
    StreamEnded,
    Submitted,
    Withdrawn,
)
from support.calls import SAFE, UNSAFE, result


def asks(call: str, traits: Traits = SAFE) -> Submitted:
    return Submitted(call, "T", traits)


def done(call: str, *, fails: bool = False) -> Finished:
    return Finished(call, result(call, fails=fails))


def emitted(effects: list[Effect]) -> list[CallResult]:
    return [effect.result for effect in effects if isinstance(effect, Emit)]


@pytest.fixture
def lane() -> Lane:
    return Lane()


def test_reads_run_together_and_a_write_waits(lane: Lane) -> None:
    assert lane.handle(asks("a")) == [Start("a")]
    assert lane.handle(asks("b")) == [Start("b")]
    assert lane.handle(asks("c", UNSAFE)) == []
    assert lane.handle(done("b")) == []
    assert lane.handle(done("a")) == [Start("c"), Emit(result("a")), Emit(result("b"))]


def test_a_read_does_not_overtake_a_waiting_write(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b", UNSAFE))
    assert lane.handle(asks("c")) == []
    assert lane.status("c") is Status.QUEUED


def test_nothing_starts_beside_a_write(lane: Lane) -> None:
    assert lane.handle(asks("a", UNSAFE)) == [Start("a")]
    assert lane.handle(asks("b")) == []
    assert lane.handle(done("a")) == [Start("b"), Emit(result("a"))]


def test_no_more_run_at_once_than_the_cap() -> None:
    lane = Lane(cap=2)
    started = [effect for call in "abc" for effect in lane.handle(asks(call))]
    assert started == [Start("a"), Start("b")]
    assert lane.handle(done("b")) == [Start("c")]
    assert lane.executing() == ("a", "c")


def test_ten_run_at_once_when_nothing_else_is_said(lane: Lane) -> None:
    assert sum(len(lane.handle(asks(str(n)))) for n in range(12)) == 10


def test_a_failure_of_the_group_aborts_what_runs_and_keeps_the_rest_from_running(lane: Lane) -> None:
    for call in "abc":
        lane.handle(asks(call))
    lane.handle(asks("d", UNSAFE))
    lane.handle(EffectBegun("c"))
    assert lane.handle(done("b", fails=True)) == [Cancel("a"), Cancel("c")]
    late = lane.handle(asks("e"))
    assert late == []
    results = emitted([*lane.handle(Finished("a", None)), *lane.handle(Finished("c", None))])
    assert [(r.call_id, r.ran, r.error_class) for r in results] == [
        ("a", False, "SiblingFailed"),
        ("b", True, ""),
        ("c", True, "SiblingFailed"),
        ("d", False, "SiblingFailed"),
        ("e", False, "SiblingFailed"),
    ]
    assert results[3].content == "Not run: T (b) of the same message failed."


def test_what_was_cancelled_and_ended_with_a_result_after_all_keeps_it(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b"))
    lane.handle(done("a", fails=True))
    assert lane.handle(done("b")) == [Emit(result("b"))]


def test_a_failure_that_is_not_the_groups_stays_alone(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b"))
    alone = CallResult(call_id="a", name="Read", content="no such file", is_error=True, ran=True)
    assert lane.handle(Finished("a", alone)) == [Emit(alone)]
    assert not lane.closed


def test_an_abort_ends_what_runs_and_what_waits_and_what_comes(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b", UNSAFE))
    assert lane.handle(Aborted("stopped by you")) == [Cancel("a")]
    lane.handle(asks("c"))
    lane.handle(StreamEnded())
    texts = [r.content for r in emitted(lane.handle(Finished("a", None)))]
    assert texts == ["Not run: the work was called off (stopped by you)."] * 3
    assert lane.finished


def test_a_call_whose_effect_began_says_that_its_outcome_is_unknown(lane: Lane) -> None:
    lane.handle(asks("a", UNSAFE))
    lane.handle(EffectBegun("a"))
    lane.handle(Aborted("x"))
    (end,) = emitted(lane.handle(Finished("a", None)))
    assert end.ran
    assert end.content.startswith("Interrupted, outcome unknown")


def test_a_read_that_was_interrupted_has_no_unknown_outcome(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(EffectBegun("a"))
    lane.handle(Aborted(""))
    assert emitted(lane.handle(Finished("a", None)))[0].content == "Interrupted: the work was called off."


def test_what_does_not_stop_in_time_gets_its_result_all_the_same(lane: Lane) -> None:
    lane.handle(asks("a", UNSAFE))
    lane.handle(EffectBegun("a"))
    lane.handle(Aborted("x"))
    (end,) = emitted(lane.handle(SettleExpired()))
    assert "may still be at work" in end.content
    assert lane.handle(done("a")) == []
    assert lane.status("a") is Status.YIELDED


def test_a_second_answer_for_a_call_does_not_replace_the_first(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b"))
    lane.handle(done("b"))
    lane.handle(Finished("b", None))
    assert emitted(lane.handle(done("a"))) == [result("a"), result("b")]


def test_time_that_runs_out_without_a_cancellation_changes_nothing(lane: Lane) -> None:
    lane.handle(asks("a"))
    assert lane.handle(SettleExpired()) == []
    assert lane.status("a") is Status.EXECUTING


def test_a_message_is_withdrawn_while_none_of_its_calls_began(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("b", UNSAFE))
    assert lane.may_withdraw
    assert lane.handle(Withdrawn()) == [Cancel("a")]
    ends = emitted(lane.handle(Finished("a", None)))
    assert [(r.call_id, r.ran, r.error_class) for r in ends] == [("a", False, "Withdrawn"), ("b", False, "Withdrawn")]
    assert lane.finished


def test_a_message_is_not_withdrawn_after_one_of_its_calls_began(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(EffectBegun("a"))
    assert not lane.may_withdraw
    with pytest.raises(InvariantBroken, match="cannot be withdrawn"):
        lane.handle(Withdrawn())


def test_no_effect_begins_after_the_lane_was_closed(lane: Lane) -> None:
    lane.handle(asks("a"))
    lane.handle(Aborted("x"))
    with pytest.raises(InvariantBroken, match="may not begin"):
        lane.handle(EffectBegun("a"))


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (asks("a"), "a submitted twice"),
        (done("z"), "z was never submitted"),
        (done("q"), "q finished before it was started"),
        (EffectBegun("q"), "q may not begin"),
    ],
)
def test_an_event_that_cannot_be_is_our_bug(lane: Lane, event: Submitted | Finished, complaint: str) -> None:
    lane.handle(asks("a"))
    lane.handle(asks("q", UNSAFE))
    with pytest.raises(InvariantBroken, match=complaint):
        lane.handle(event)


def test_no_call_comes_after_the_end_of_the_stream(lane: Lane) -> None:
    lane.handle(StreamEnded())
    with pytest.raises(InvariantBroken, match="after the end of the stream"):
        lane.handle(asks("a"))


def test_a_lane_without_room_is_refused() -> None:
    with pytest.raises(InvariantBroken):
        Lane(cap=0)


STATES = {"queued", "executing", "begun", "ended", "to come"}


@pytest.mark.parametrize("stream_ended", [False, True])
@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("closing", ["sibling", "abort", "abort and settle", "withdraw"])
def test_whatever_happens_to_a_call_it_gets_exactly_one_result(closing: str, state: str, stream_ended: bool) -> None:
    """The matrix: every way to close a lane, for a call in every state, before and after the end of the stream."""
    lane = Lane()
    effects = lane.handle(asks("b"))
    if state != "to come":
        effects += lane.handle(asks("x", UNSAFE if state == "queued" else SAFE))
    if state == "begun":
        effects += lane.handle(EffectBegun("x"))
    if state == "ended":
        effects += lane.handle(done("x"))
    if stream_ended and state != "to come":
        effects += lane.handle(StreamEnded())
    effects += _close(lane, closing)
    if state == "to come" and closing != "withdraw":
        effects += lane.handle(asks("x"))
    if closing == "abort and settle":
        effects += lane.handle(SettleExpired())
    for cancelled in [effect.call for effect in effects if isinstance(effect, Cancel)]:
        effects += lane.handle(Finished(cancelled, None))
    effects += lane.handle(StreamEnded())
    if lane.executing():
        effects += [e for call in lane.executing() for e in lane.handle(done(call))]
    expected = ["b"] if state == "to come" and closing == "withdraw" else ["b", "x"]
    assert [r.call_id for r in emitted(effects)] == expected
    assert lane.finished


def _close(lane: Lane, closing: str) -> list[Effect]:
    match closing:
        case "sibling":
            return lane.handle(done("b", fails=True))
        case "withdraw":
            return lane.handle(Withdrawn()) if lane.may_withdraw else lane.handle(Aborted("began"))
        case _:
            return lane.handle(Aborted("stop"))


def test_batches_are_runs_of_safe_calls_and_unsafe_calls_alone() -> None:
    calls = [ToolCall(id=c, name="T") for c in "abCDe"]
    batches = partition(calls, lambda c: SAFE if c.id.islower() else UNSAFE)
    assert [("".join(c.id for c in b.calls), b.concurrency_safe) for b in batches] == [
        ("ab", True),
        ("C", False),
        ("D", False),
        ("e", True),
    ]


def test_a_batch_is_as_wide_as_the_cap_lets_it() -> None:
    calls = tuple(ToolCall(id=str(n), name="T") for n in range(12))
    assert Batch(calls, True).width() == 10
    assert Batch(calls, True).width(cap=3) == 3
    assert Batch(calls[:1], False).width() == 1
