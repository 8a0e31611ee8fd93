"""What all hooks of one event said together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pydantic import JsonValue

from retinue.tools.base import Behavior, Decision
from retinue.tools.hooks.answers import Answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    decision  the strictest: deny, then ask, then allow
    blocked   what each hook said that blocks
    halt      why the turn ends; None: it does not
    problems  what went wrong with hooks
    others    as in `Answer`; of several new inputs or outputs the last stands
    """

    decision: Decision | None = None
    blocked: tuple[str, ...] = ()
    updated_input: Mapping[str, JsonValue] | None = None
    updated_output: JsonValue = None
    contexts: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    halt: str | None = None
    rules: tuple[tuple[Behavior, str], ...] = ()
    worktree: str = ""
    problems: tuple[str, ...] = ()

    @property
    def feedback(self) -> str:
        """Why it is blocked, in words; empty when it is not."""
        return "\n".join(self.blocked)


SILENCE = Verdict()


def merged(answers: Sequence[tuple[str, Answer]]) -> Verdict:
    """Answers with the names of their hooks, in the order of the settings."""
    decisions = [
        Decision(each.decision, each.reason or f"{name} says {each.decision}", name)
        for name, each in answers
        if each.decision is not None
    ]
    said = [each for _, each in answers]
    inputs = [each.updated_input for each in said if each.updated_input is not None]
    outputs = [each.updated_output for each in said if each.updated_output is not None]
    return Verdict(
        decision=reduce(lambda a, b: a | b, decisions) if decisions else None,
        blocked=tuple(each.blocked for each in said if each.blocked is not None),
        updated_input=inputs[-1] if inputs else None,
        updated_output=outputs[-1] if outputs else None,
        contexts=tuple(context for each in said for context in each.contexts),
        messages=tuple(each.message for each in said if each.message),
        halt=next((each.halt for each in said if each.halt is not None), None),
        rules=tuple(rule for each in said for rule in each.rules),
        worktree=next((each.worktree for each in said if each.worktree), ""),
        problems=tuple(f"{name}: {each.problem}" for name, each in answers if each.problem),
    )
