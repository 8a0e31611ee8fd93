"""What follows: a message, a broken stream, a limit. Pure: time and chance are arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from retinue.agents.boot import AgentLimits
from retinue.agents.model.port import RETRYABLE, Broken, StopReason
from retinue.agents.records import TurnEnd

CONTINUATIONS = 3
"""How often in a row a message may be cut off, or paused, before the turn ends."""
MOST_OUTPUT_TOKENS = 64_000

_RESUME = (
    "Your message reached the output limit and was cut off. Go on exactly where it stopped, without repeating and "
    "without comment. Break what is left into smaller pieces."
)
_CUT_CALL = (
    "Your message reached the output limit in the middle of a tool call; that call did not run. Make it again in "
    "smaller pieces: write a large file in several steps."
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """The last message: why it ended, how many calls it has, and how many of those were cut off."""

    stop_reason: StopReason | None
    calls: int = 0
    cut_calls: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """Make the next request, with this note beside the results."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class End:
    reason: TurnEnd
    detail: str = ""


def after_message(spoken: Spoken, in_a_row: int) -> Ask | End:
    """`in_a_row` counts the cut or paused messages up to this one."""
    match spoken.stop_reason:
        case "refusal":
            return End("refusal", "the model refused to answer")
        case "model_context_window_exceeded":
            return End("max_tokens", "the conversation fills the model's context window")
        case "max_tokens":
            return _after_cut(spoken, in_a_row)
        case "pause_turn":
            return Ask() if spoken.calls or in_a_row <= CONTINUATIONS else End("max_tokens", "the model only pauses")
        case "end_turn" | "tool_use" | "stop_sequence" | None:
            return Ask() if spoken.calls else End("done")
        case _:
            assert_never(spoken.stop_reason)


def _after_cut(spoken: Spoken, in_a_row: int) -> Ask | End:
    if in_a_row > CONTINUATIONS:
        return End("max_tokens", f"the output limit cut off {in_a_row} messages in a row")
    if spoken.cut_calls:
        return Ask(_CUT_CALL)
    return Ask("" if spoken.calls else _RESUME)


def output_limit(configured: int, in_a_row: int) -> int:
    """Twice as much after each message in a row that was cut off."""
    return max(configured, min(configured << in_a_row, MOST_OUTPUT_TOKENS))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays double from `first_s` up to `most_s`, with up to `jitter` of itself on top; a server's wish is kept."""

    attempts: int = 10
    first_s: float = 0.5
    most_s: float = 32.0
    jitter: float = 0.25
    most_retry_after_s: float = 300.0
    total_s: float = 1_800.0


@dataclass(frozen=True, slots=True)
class Again:
    after_s: float


def after_break(policy: RetryPolicy, broken: Broken, failures: int, elapsed_s: float, chance: float) -> Again | End:
    """Ask again, and when. `failures` in a row with this one, `elapsed_s` since the first; `chance` is in [0, 1)."""
    if broken.reason == "expectation":
        return End("expectation", broken.message)
    if broken.reason not in RETRYABLE:
        return End("model_error", f"{broken.reason}: {broken.message}")
    delay = min(policy.first_s * 2 ** min(failures - 1, 30), policy.most_s) * (1 + policy.jitter * chance)
    if broken.retry_after_s is not None:
        wish = max(0.0, min(broken.retry_after_s, policy.most_retry_after_s))
        delay = wish + policy.first_s * policy.jitter * chance
    if failures >= policy.attempts:
        return End("model_error", f"gave up after {failures} attempts in a row: {broken.reason}: {broken.message}")
    if elapsed_s + delay > policy.total_s:
        return End(
            "model_error", f"gave up after {elapsed_s:.0f} s without an answer: {broken.reason}: {broken.message}"
        )
    return Again(delay)


def over_limit(limits: AgentLimits, requests: int, tokens: int, elapsed_s: float) -> str:
    """Why no further request may be made; empty when one may."""
    if limits.requests is not None and requests >= limits.requests:
        return f"all {limits.requests} model requests are used (limits.turns)"
    if limits.tokens is not None and tokens >= limits.tokens:
        return f"{tokens} of {limits.tokens} tokens are used (limits.tokens)"
    if limits.wall_s is not None and elapsed_s >= limits.wall_s:
        return f"{elapsed_s:.0f} s of {limits.wall_s:.0f} s have passed (limits.wall)"
    return ""
