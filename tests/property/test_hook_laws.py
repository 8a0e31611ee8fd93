"""Whatever hooks print, in whatever order they are heard: nothing breaks, and a denial stands."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from retinue.tools.base import Behavior
from retinue.tools.hooks.answers import Answer, of_command
from retinue.tools.hooks.events import EVENTS, POWERS, Event
from retinue.tools.hooks.merge import merged

events = st.sampled_from(EVENTS)
KEYS = [
    *("continue", "stopReason", "systemMessage", "decision", "reason", "hookSpecificOutput", "hookEventName"),
    *("permissionDecision", "updatedInput", "additionalContext", "updatedPermissions", "rules", "behavior", "type"),
    *("toolName", "ruleContent", "destination", "worktreePath", "updatedToolOutput"),
]
WORDS = [*EVENTS, "allow", "deny", "ask", "block", "approve", "addRules", "session", "x"]
leaves = st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=5)
keys = st.sampled_from(KEYS)
values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=5), max_leaves=20)
outputs = st.text(max_size=40) | st.dictionaries(keys, values, max_size=6).map(json.dumps)
decisions: st.SearchStrategy[Behavior | None] = st.sampled_from(("allow", "ask", "deny", None))


@given(events, st.integers(-64, 255), outputs, st.text(max_size=20))
def test_any_output_is_an_answer_within_the_powers_of_its_event(event: Event, code: int, out: str, err: str) -> None:
    answer = of_command(event, code, out, err)
    powers = POWERS[event]
    assert answer.decision is None or event in ("PreToolUse", "PermissionRequest")
    assert answer.blocked is None or powers.exit_blocks or powers.decision
    assert not answer.contexts or powers.context or powers.plain_context
    assert answer.halt is None or powers.halts
    assert not answer.rules or event == "PermissionRequest"


@given(outputs, st.text(max_size=20))
def test_exit_code_2_always_denies_a_call(out: str, err: str) -> None:
    assert of_command("PreToolUse", 2, out, err).decision == "deny"


@given(st.lists(decisions, max_size=6))
def test_the_strictest_decision_stands_in_any_order(said: list[Behavior | None]) -> None:
    answers = [("hook", Answer(decision=each)) for each in said]
    order = ["allow", "ask", "deny"]
    expected = max((each for each in said if each is not None), key=order.index, default=None)
    for heard in (answers, answers[::-1], sorted(answers, key=lambda pair: str(pair[1].decision))):
        verdict = merged(heard)
        assert (verdict.decision.behavior if verdict.decision is not None else None) == expected
