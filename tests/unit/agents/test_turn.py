"""What follows a message, a broken stream, a limit."""

from __future__ import annotations

import pytest

from retinue.agents.boot import AgentLimits
from retinue.agents.model.port import BreakKind, Broken, StopReason
from retinue.agents.turn import (
    Again,
    Ask,
    End,
    RetryPolicy,
    Spoken,
    after_break,
    after_message,
    output_limit,
    over_limit,
)

POLICY = RetryPolicy()


def broke(reason: BreakKind = "dropped", retry_after_s: float | None = None) -> Broken:
    return Broken(reason=reason, message="gone", retry_after_s=retry_after_s)


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "tool_use", None])
def test_a_message_without_calls_ends_the_turn(stop: StopReason | None) -> None:
    assert after_message(Spoken(stop), 0) == End("done")


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "tool_use", "pause_turn", "max_tokens", None])
def test_a_message_with_calls_is_followed_by_a_request(stop: StopReason | None) -> None:
    assert after_message(Spoken(stop, calls=2), 1) == Ask()


def test_a_text_that_was_cut_off_is_gone_on_with() -> None:
    follows = after_message(Spoken("max_tokens"), 1)
    assert isinstance(follows, Ask)
    assert "Go on exactly where it stopped" in follows.note


def test_a_call_that_was_cut_off_is_to_be_made_in_smaller_pieces() -> None:
    follows = after_message(Spoken("max_tokens", calls=2, cut_calls=1), 1)
    assert isinstance(follows, Ask)
    assert "smaller pieces" in follows.note


def test_cut_messages_in_a_row_end_the_turn() -> None:
    assert isinstance(after_message(Spoken("max_tokens"), 3), Ask)
    end = after_message(Spoken("max_tokens"), 4)
    assert isinstance(end, End)
    assert end.reason == "max_tokens"
    assert "4 messages in a row" in end.detail


def test_a_pause_is_answered_with_a_request_a_few_times() -> None:
    assert after_message(Spoken("pause_turn"), 1) == Ask()
    assert isinstance(after_message(Spoken("pause_turn"), 4), End)


@pytest.mark.parametrize("calls", [0, 2])
@pytest.mark.parametrize(("stop", "reason"), [("refusal", "refusal"), ("model_context_window_exceeded", "max_tokens")])
def test_a_refusal_and_a_full_window_end_the_turn(stop: StopReason, reason: str, calls: int) -> None:
    end = after_message(Spoken(stop, calls=calls), 0)
    assert isinstance(end, End)
    assert end.reason == reason


def test_the_output_limit_doubles_up_to_the_most() -> None:
    assert [output_limit(8_000, n) for n in range(5)] == [8_000, 16_000, 32_000, 64_000, 64_000]
    assert output_limit(100_000, 2) == 100_000


def test_delays_double_up_to_the_most() -> None:
    delays = [after_break(POLICY, broke(), n, 0, 0) for n in range(1, 10)]
    assert delays == [Again(s) for s in (0.5, 1, 2, 4, 8, 16, 32, 32, 32)]


def test_chance_adds_a_quarter_at_most() -> None:
    assert after_break(POLICY, broke(), 2, 0, 1.0) == Again(1.25)


def test_the_wish_of_the_server_is_kept_within_reason() -> None:
    assert after_break(POLICY, broke("rate_limited", 20), 1, 0, 0) == Again(20)
    assert after_break(POLICY, broke("rate_limited", 9_999), 1, 0, 0) == Again(300)
    assert after_break(POLICY, broke("rate_limited", -5), 1, 0, 0) == Again(0)


def test_agents_that_got_the_same_wish_do_not_come_back_at_once() -> None:
    first, second = (after_break(POLICY, broke("rate_limited", 20), 1, 0, chance) for chance in (0.1, 0.9))
    assert first != second


def test_attempts_end() -> None:
    end = after_break(POLICY, broke(), 10, 0, 0)
    assert end == End("model_error", "gave up after 10 attempts in a row: dropped: gone")


def test_patience_ends() -> None:
    end = after_break(POLICY, broke("overloaded", 300), 3, 1_600, 0)
    assert end == End("model_error", "gave up after 1600 s without an answer: overloaded: gone")


@pytest.mark.parametrize("reason", ["invalid_request", "authentication", "not_found"])
def test_what_would_fail_again_is_not_asked_again(reason: BreakKind) -> None:
    assert after_break(POLICY, broke(reason), 1, 0, 0) == End("model_error", f"{reason}: gone")


def test_a_script_that_expected_something_else_ends_the_turn_as_such() -> None:
    assert after_break(POLICY, broke("expectation"), 1, 0, 0) == End("expectation", "gone")


def test_limits_are_over_when_they_are_used_up() -> None:
    limits = AgentLimits(requests=3, tokens=100, wall_s=60)
    assert over_limit(limits, 2, 99, 59.9) == ""
    assert "3 model requests" in over_limit(limits, 3, 0, 0)
    assert "100 of 100 tokens" in over_limit(limits, 0, 100, 0)
    assert "60 s of 60 s" in over_limit(limits, 0, 0, 60)
    assert over_limit(AgentLimits(), 10**9, 10**9, 10**9) == ""
