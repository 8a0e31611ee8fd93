"""What one hook said: its exit code and output read leniently, field by field. Pure.

A field that makes no sense is named and passed over; the others count. So a slip in one never undoes a denial in
another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from retinue.tools.base import Behavior
from retinue.tools.hooks.events import POWERS, Event
from retinue.tools.text import one_line, printable

BLOCKS = 2
_PERMISSIONS: dict[str, Behavior] = {"allow": "allow", "deny": "deny", "ask": "ask", "defer": "ask"}
_OLD_DECISIONS: dict[str, Behavior] = {"approve": "allow", "block": "deny"}


@dataclass(frozen=True, slots=True)
class Answer:
    """
    decision        about a call: PreToolUse, PermissionRequest
    blocked         what is about to happen shall not, or the agent shall hear this; None: nothing of the kind
    updated_input   replaces the input as a whole
    updated_output  replaces what the agent sees of a result
    contexts        told to the agent
    message         told to people who watch
    halt            the turn shall end, for this reason; None: it shall not
    rules           permission rules for the rest of the session
    worktree        the path that a WorktreeCreate hook made
    problem         what went wrong with the hook itself; empty: nothing
    """

    decision: Behavior | None = None
    reason: str = ""
    blocked: str | None = None
    updated_input: Mapping[str, JsonValue] | None = None
    updated_output: JsonValue = None
    contexts: tuple[str, ...] = ()
    message: str = ""
    halt: str | None = None
    rules: tuple[tuple[Behavior, str], ...] = ()
    worktree: str = ""
    problem: str = ""


NOTHING = Answer()


@dataclass(slots=True)
class _Fields:
    """Reads a JSON object, and collects what does not fit."""

    values: Mapping[str, JsonValue]
    problems: list[str] = field(default_factory=list[str])

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if isinstance(value, str):
            return printable(value)
        self._wrong(name, value, "a text")
        return ""

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if isinstance(value, bool):
            return value
        return self._wrong(name, value, "true or false")

    def object(self, name: str) -> dict[str, JsonValue] | None:
        value = self.values.get(name)
        if isinstance(value, dict):
            return value
        return self._wrong(name, value, "an object")

    def items(self, name: str) -> list[JsonValue]:
        value = self.values.get(name)
        if isinstance(value, list):
            return value
        self._wrong(name, value, "a list")
        return []

    def inner(self, name: str) -> _Fields:
        return _Fields(self.object(name) or {}, self.problems)

    def _wrong(self, name: str, value: JsonValue, kind: str) -> None:
        if value is not None:
            self.problems.append(f"{name} is not {kind}")

    def one_of(self, name: str, known: Mapping[str, Behavior]) -> Behavior | None:
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value in known:
            return known[value]
        self.problems.append(f"{name} is {one_line(str(value), 40)!r}, not one of: {', '.join(known)}")
        return None


def of_command(event: Event, exit_code: int, stdout: str, stderr: str) -> Answer:
    """Output that begins with a brace is JSON whatever the exit code. Exit code 2 blocks, and no JSON undoes that."""
    answer = _of_output(event, stdout, well=exit_code == 0)
    if exit_code == BLOCKS:
        return _blocking(event, answer, printable(stderr).strip() or "a hook blocked it without saying why")
    if exit_code != 0:
        if answer is not NOTHING and not answer.problem:
            return answer
        return replace(answer, problem=f"it ended with {exit_code}: {one_line(printable(stderr)) or 'no word why'}")
    if event == "WorktreeCreate" and not answer.worktree:
        return replace(answer, problem="it printed no path")
    return answer


def of_json(event: Event, values: Mapping[str, JsonValue]) -> Answer:
    """What an object says."""
    fields = _Fields(values)
    powers = POWERS[event]
    special = fields.inner("hookSpecificOutput")
    named = special.text("hookEventName")
    if special.values and named != event:
        fields.problems.append(f"hookSpecificOutput is for {named or 'no event'}, not for {event}")
        special = _Fields({}, fields.problems)
    reason = fields.text("reason")
    blocked = _block(fields, reason, event)
    decision, why = _decision(event, fields, special, reason)
    context = special.text("additionalContext")
    goes_on = fields.flag("continue")
    return Answer(
        decision=decision,
        reason=why,
        blocked=blocked if powers.decision and event != "PreToolUse" else None,
        updated_input=_input(event, special),
        updated_output=_output(event, special),
        contexts=(context,) if context and powers.context else (),
        message=fields.text("systemMessage"),
        halt=(fields.text("stopReason") or "a hook ended the turn") if goes_on is False and powers.halts else None,
        rules=_rules(special) if event == "PermissionRequest" else (),
        worktree=special.text("worktreePath") if event == "WorktreeCreate" else "",
        problem="; ".join(fields.problems),
    )


def of_model(event: Event, values: Mapping[str, JsonValue], *, go_on: bool) -> Answer:
    """The answer of a model to a hook's question: `{"ok": …, "reason": …}`. A no to a call ends the turn, too."""
    fields = _Fields(values)
    ok, reason = fields.flag("ok"), fields.text("reason") or "a hook's question was answered with no"
    if ok is None:
        return Answer(problem="the model did not answer with ok and reason")
    if ok or event == "PermissionRequest":
        return NOTHING
    if event == "PreToolUse":
        return Answer(decision="deny", reason=reason, halt=None if go_on else reason)
    return Answer(blocked=reason)


def _of_output(event: Event, stdout: str, *, well: bool) -> Answer:
    text = stdout.strip()
    if text.startswith("{"):
        try:
            values: JsonValue = json.loads(text)
        except (ValueError, RecursionError) as error:
            return Answer(problem=f"its output begins like JSON and is none: {one_line(str(error))}")
        return of_json(event, values if isinstance(values, dict) else {})
    if not text or not well:
        return NOTHING
    if event == "WorktreeCreate":
        return Answer(worktree=text.splitlines()[-1].strip())
    return Answer(contexts=(printable(text),)) if POWERS[event].plain_context else NOTHING


def _blocking(event: Event, answer: Answer, why: str) -> Answer:
    if event == "PreToolUse":
        return replace(answer, decision="deny", reason=why)
    if POWERS[event].exit_blocks:
        return replace(answer, blocked=why)
    if event == "PermissionRequest":
        return answer
    return replace(answer, problem=one_line(why))


def _block(fields: _Fields, reason: str, event: Event) -> str | None:
    if event in ("PreToolUse", "PermissionRequest"):
        return None
    wanted = fields.one_of("decision", _OLD_DECISIONS)
    return (reason or "a hook blocked it without saying why") if wanted == "deny" else None


def _decision(event: Event, fields: _Fields, special: _Fields, reason: str) -> tuple[Behavior | None, str]:
    if event == "PreToolUse":
        said = special.one_of("permissionDecision", _PERMISSIONS)
        if said is not None:
            return said, special.text("permissionDecisionReason") or reason
        return fields.one_of("decision", _OLD_DECISIONS), reason
    if event == "PermissionRequest":
        decision = special.inner("decision")
        said = decision.one_of("behavior", {"allow": "allow", "deny": "deny"})
        return said, decision.text("message")
    return None, ""


def _input(event: Event, special: _Fields) -> Mapping[str, JsonValue] | None:
    if event == "PreToolUse":
        return special.object("updatedInput")
    return special.inner("decision").object("updatedInput") if event == "PermissionRequest" else None


def _output(event: Event, special: _Fields) -> JsonValue:
    if event != "PostToolUse":
        return None
    own = special.values.get("updatedToolOutput")
    return own if own is not None else special.values.get("updatedMCPToolOutput")


def _rules(special: _Fields) -> tuple[tuple[Behavior, str], ...]:
    """Of the changes of rights that an answer asks for, the rules that it adds to the session."""
    found: list[tuple[Behavior, str]] = []
    for update in special.inner("decision").items("updatedPermissions"):
        if not isinstance(update, dict) or update.get("type") != "addRules" or update.get("destination") != "session":
            special.problems.append("updatedPermissions: only addRules for the session is heard")
            continue
        fields = _Fields(update, special.problems)
        behavior = fields.one_of("behavior", {"allow": "allow", "deny": "deny", "ask": "ask"})
        for rule in fields.items("rules"):
            if behavior is not None and isinstance(rule, dict):
                found.append((behavior, _rule(rule)))
    return tuple(found)


def _rule(rule: Mapping[str, JsonValue]) -> str:
    content = rule.get("ruleContent")
    return f"{rule.get('toolName')}({content})" if content else str(rule.get("toolName"))
