"""What the exit code and the output of a hook mean at each event: the format that scripts are written for."""

from __future__ import annotations

import json

import pytest

from retinue.tools.base import Decision
from retinue.tools.hooks.answers import NOTHING, Answer, of_command, of_json, of_model
from retinue.tools.hooks.events import EVENTS, POWERS, Event, deadline_of
from retinue.tools.hooks.merge import SILENCE, merged

BLOCKABLE = [event for event in EVENTS if POWERS[event].exit_blocks and event != "PreToolUse"]
DECIDABLE = [event for event in EVENTS if POWERS[event].decision and event != "PreToolUse"]
DEAF = [event for event in EVENTS if not POWERS[event].exit_blocks and event != "PermissionRequest"]


def special(event: Event, **fields: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def said(event: Event, output: object = "", *, code: int = 0, stderr: str = "") -> Answer:
    return of_command(event, code, output if isinstance(output, str) else json.dumps(output), stderr)


@pytest.mark.parametrize("event", EVENTS)
def test_silence_and_code_0_say_nothing(event: Event):
    if event == "WorktreeCreate":
        assert said(event).problem == "it printed no path"
    else:
        assert said(event) == NOTHING


@pytest.mark.parametrize("event", BLOCKABLE)
def test_code_2_blocks_with_what_stands_on_stderr(event: Event):
    assert said(event, code=2, stderr="not yet\n").blocked == "not yet"


def test_code_2_denies_a_call():
    answer = said("PreToolUse", code=2, stderr="no rm\n")
    assert (answer.decision, answer.reason) == ("deny", "no rm")


@pytest.mark.parametrize("event", DEAF)
def test_code_2_blocks_nothing_where_nothing_can_be_blocked(event: Event):
    answer = said(event, code=2, stderr="no")
    assert (answer.blocked, answer.decision, answer.problem) == (None, None, "no")


def test_code_2_has_no_effect_at_a_permission_request():
    assert said("PermissionRequest", code=2, stderr="no") == NOTHING


def test_no_json_undoes_code_2():
    allow = special("PreToolUse", permissionDecision="allow")
    assert said("PreToolUse", allow, code=2, stderr="no").decision == "deny"
    assert said("Stop", {"decision": "approve"}, code=2, stderr="go on").blocked == "go on"


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("code", [1, 3, 126, 127, 255, -9])
def test_any_other_code_is_an_error_that_blocks_nothing(event: Event, code: int):
    answer = said(event, "plain", code=code, stderr="oh\nmore")
    assert (answer.blocked, answer.decision, answer.contexts) == (None, None, ())
    assert answer.problem == f"it ended with {code}: oh more"


def test_json_counts_at_every_exit_code():
    assert said("Stop", {"decision": "block", "reason": "tests fail"}, code=1).blocked == "tests fail"


@pytest.mark.parametrize("event", DECIDABLE)
def test_a_decision_blocks_with_its_reason(event: Event):
    assert said(event, {"decision": "block", "reason": "because"}).blocked == "because"


@pytest.mark.parametrize("event", [e for e in EVENTS if e not in DECIDABLE and e != "PreToolUse"])
def test_a_decision_blocks_nothing_elsewhere(event: Event):
    assert said(event, {"decision": "block", "reason": "because"}).blocked is None


@pytest.mark.parametrize(
    ("output", "decision", "reason"),
    [
        (special("PreToolUse", permissionDecision="allow", permissionDecisionReason="ok"), "allow", "ok"),
        (special("PreToolUse", permissionDecision="deny", permissionDecisionReason="no"), "deny", "no"),
        (special("PreToolUse", permissionDecision="ask"), "ask", ""),
        (special("PreToolUse", permissionDecision="defer"), "ask", ""),
        ({"decision": "approve", "reason": "old"}, "allow", "old"),
        ({"decision": "block", "reason": "old"}, "deny", "old"),
        ({}, None, ""),
    ],
)
def test_a_call_is_decided_about(output: dict[str, object], decision: str | None, reason: str):
    answer = said("PreToolUse", output)
    assert (answer.decision, answer.reason, answer.problem) == (decision, reason, "")


def test_a_call_gets_another_input_and_a_word():
    output = special("PreToolUse", updatedInput={"command": "ls"}, additionalContext="mind the gap")
    answer = said("PreToolUse", output)
    assert (answer.updated_input, answer.contexts) == ({"command": "ls"}, ("mind the gap",))


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
def test_plain_output_is_told_where_a_conversation_begins(event: Event):
    assert said(event, "the branch is main\n").contexts == ("the branch is main",)


@pytest.mark.parametrize("event", [e for e in EVENTS if not POWERS[e].plain_context and e != "WorktreeCreate"])
def test_plain_output_is_told_nowhere_else(event: Event):
    assert said(event, "chatter") == NOTHING


@pytest.mark.parametrize("event", [e for e in EVENTS if POWERS[e].context])
def test_additional_context_is_told(event: Event):
    assert said(event, special(event, additionalContext="a word")).contexts == ("a word",)


@pytest.mark.parametrize("event", EVENTS)
def test_continue_false_ends_the_turn_where_there_is_one(event: Event):
    answer = said(event, {"continue": False, "stopReason": "enough"})
    assert answer.halt == ("enough" if POWERS[event].halts else None)


def test_a_message_is_for_people():
    assert said("Stop", {"systemMessage": "hello", "suppressOutput": True}).message == "hello"


def test_a_permission_request_is_answered():
    rules = {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "make *"}, {"toolName": "Read"}],
        "behavior": "allow",
        "destination": "session",
    }
    decision = {"behavior": "allow", "updatedInput": {"command": "make"}, "updatedPermissions": [rules]}
    answer = said("PermissionRequest", special("PermissionRequest", decision=decision))
    assert (answer.decision, answer.updated_input) == ("allow", {"command": "make"})
    assert answer.rules == (("allow", "Bash(make *)"), ("allow", "Read"))
    denied = said("PermissionRequest", special("PermissionRequest", decision={"behavior": "deny", "message": "no"}))
    assert (denied.decision, denied.reason) == ("deny", "no")


def test_changes_of_rights_for_longer_than_the_session_are_not_heard():
    update = {"type": "setMode", "mode": "bypassPermissions", "destination": "userSettings"}
    output = special("PermissionRequest", decision={"behavior": "allow", "updatedPermissions": [update]})
    answer = said("PermissionRequest", output)
    assert (answer.rules, answer.problem) == ((), "updatedPermissions: only addRules for the session is heard")


def test_the_output_of_a_tool_is_replaced():
    assert said("PostToolUse", special("PostToolUse", updatedToolOutput="short")).updated_output == "short"
    assert said("PostToolUse", special("PostToolUse", updatedMCPToolOutput={"a": 1})).updated_output == {"a": 1}


@pytest.mark.parametrize(
    ("output", "path"),
    [("making it\n/w/tree\n\n", "/w/tree"), (special("WorktreeCreate", worktreePath="/w/t"), "/w/t")],
)
def test_a_worktree_is_named(output: object, path: str):
    assert said("WorktreeCreate", output).worktree == path


@pytest.mark.parametrize(
    "output",
    ["{not json", "{}{}", '{"a": ', "{" * 100_000],
)
def test_what_begins_like_json_and_is_none_says_so_and_blocks_nothing(output: str):
    answer = said("PreToolUse", output)
    assert answer.problem.startswith("its output begins like JSON and is none")
    assert answer.decision is None


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ({"continue": "no"}, "continue is not true or false"),
        ({"systemMessage": 5}, "systemMessage is not a text"),
        ({"hookSpecificOutput": "x"}, "hookSpecificOutput is not an object"),
        (special("Stop", additionalContext="x"), "hookSpecificOutput is for Stop, not for PreToolUse"),
        ({"hookSpecificOutput": {"additionalContext": "x"}}, "hookSpecificOutput is for no event, not for PreToolUse"),
        (
            special("PreToolUse", permissionDecision="maybe"),
            "permissionDecision is 'maybe', not one of: allow, deny, ask, defer",
        ),
    ],
)
def test_a_field_that_makes_no_sense_is_named(output: dict[str, object], problem: str):
    assert said("PreToolUse", output).problem == problem


def test_a_slip_in_one_field_undoes_no_denial_in_another():
    output = {"continue": "yes", **special("PreToolUse", permissionDecision="deny", updatedInput=[1])}
    answer = said("PreToolUse", output)
    assert answer.decision == "deny"
    assert "updatedInput is not an object" in answer.problem


def test_control_characters_and_colours_go():
    assert said("SessionStart", "\x1b[31mred\x1b[0m \x07bell").contexts == ("red \u2407bell",)


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        ("PreToolUse", Answer(decision="deny", reason="no", halt="no")),
        ("Stop", Answer(blocked="no")),
        ("PermissionRequest", NOTHING),
    ],
)
def test_a_model_that_says_no_is_heard(event: Event, answer: Answer):
    assert of_model(event, {"ok": False, "reason": "no"}, go_on=False) == answer


def test_a_model_may_deny_a_call_and_let_the_turn_go_on():
    assert of_model("PreToolUse", {"ok": False, "reason": "no"}, go_on=True).halt is None
    assert of_model("Stop", {"ok": True}, go_on=False) == NOTHING
    assert of_model("Stop", {"fine": True}, go_on=False).problem == "the model did not answer with ok and reason"


def test_deadlines_are_those_of_the_format():
    assert deadline_of("PreToolUse", "command") == 600
    assert deadline_of("UserPromptSubmit", "command") == 30
    assert deadline_of("Stop", "prompt") == 30
    assert deadline_of("SessionEnd", "command") == 1.5


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        (("allow", "ask", "deny"), "deny"),
        (("allow", "ask"), "ask"),
        (("allow", None), "allow"),
        ((None, None), None),
        (("deny", "allow"), "deny"),
    ],
)
def test_of_several_decisions_the_strictest_stands(answers: tuple[str | None, ...], decision: str | None):
    hooks = [(str(n), Answer(decision=each)) for n, each in enumerate(answers)]  # type: ignore[arg-type]
    verdict = merged(hooks)
    assert (verdict.decision.behavior if verdict.decision else None) == decision


def test_everything_else_is_put_together_in_order():
    first = of_json("PostToolUse", {"decision": "block", "reason": "one", "systemMessage": "m1"})
    second = of_json("PostToolUse", {"decision": "block", "reason": "two", "continue": False, "stopReason": "stop"})
    third = Answer(contexts=("c",), updated_input={"a": 1}, problem="odd")
    verdict = merged([("a", first), ("b", second), ("c", third), ("d", Answer(updated_input={"a": 2}))])
    assert verdict.feedback == "one\ntwo"
    assert (verdict.messages, verdict.halt, verdict.contexts) == (("m1",), "stop", ("c",))
    assert (verdict.updated_input, verdict.problems) == ({"a": 2}, ("c: odd",))
    assert merged([]) == SILENCE


def test_a_decision_without_a_reason_names_its_hook():
    assert merged([("the hook x", Answer(decision="deny"))]).decision == Decision(
        "deny", "the hook x says deny", "the hook x"
    )
