"""Every step of the permission chain for one call, and which of them decides. Nothing runs, and nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from retinue.tools.base import (
    AnyTool,
    AskFirst,
    Behavior,
    CommandSubject,
    Decision,
    Refused,
    Subject,
    ToolContext,
    ToolInput,
)
from retinue.tools.permissions.chain import PermissionPolicy, Rights, case_of
from retinue.tools.permissions.decide import Case, decide
from retinue.tools.permissions.facts import Facts, facts_of

Part = Literal["validation", "hook", "tool", "rights", "parameter", "sandbox", "classifier", "person"]


@dataclass(frozen=True, slots=True)
class Step:
    """`says` is what it comes to by itself: a behaviour, or `-` for no opinion."""

    part: Part
    says: Behavior | Literal["-"]
    text: str
    whose: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`decision` is what the call would come to; an `ask` is one that somebody would be asked."""

    decision: Decision
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Around:
    """What else would be heard, as far as it can be told without running anything."""

    hooks: tuple[str, ...] = ()
    classifier: bool = False


async def explain(
    policy: PermissionPolicy, tool: AnyTool, args: ToolInput, ctx: ToolContext, around: Around | None = None
) -> Explanation:
    """The same judgement as a call gets, taken apart."""
    around = around or Around()
    validation = await tool.validate_input(args, ctx)
    if isinstance(validation, Refused):
        refused = Decision("deny", validation.message, "validation")
        return Explanation(refused, (Step("validation", "deny", validation.message),))
    forced = validation.message if isinstance(validation, AskFirst) else None
    subject = tool.subject(args, ctx)
    verdict = await policy.judged(tool, args, ctx, subject, forced)
    steps = [_validated(forced), *_hooks(around), await _tool(tool, args, ctx)]
    facts = None if isinstance(subject, CommandSubject) else await facts_of(tool, args, subject, ctx, forced)
    for rights in policy.now:
        steps += _of_rights(rights, tool, facts) if facts is not None else _of_command(rights, tool, verdict)
        if (rule := rights.book.by_parameter(tool, args)) is not None:
            steps.append(
                Step(
                    "parameter",
                    rule.behavior,
                    f"the {rule.source} rule {rule} is about what it was given",
                    rights.whose,
                )
            )
    steps += _after(subject, ctx, verdict, around, someone=policy.person is not None)
    return Explanation(verdict, tuple(steps))


def _validated(forced: str | None) -> Step:
    return Step("validation", "ask", forced) if forced else Step("validation", "-", "the input is good")


def _hooks(around: Around) -> Iterator[Step]:
    for hook in around.hooks:
        yield Step("hook", "-", f"would be asked first: {hook}")


async def _tool(tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Step:
    said = await tool.check_permissions(args, ctx)
    if said is None:
        return Step("tool", "-", "leaves it to rules and mode")
    return Step("tool", said.behavior, said.reason or said.source)


def _of_rights(rights: Rights, tool: AnyTool, facts: Facts) -> Iterator[Step]:
    case = case_of(rights, tool, facts)
    rules = [rule for rule in (case.deny, case.ask, case.allow) if rule is not None]
    for rule in rules:
        yield Step("rights", rule.behavior, f"the {rule.source} rule {rule} fits", rights.whose)
    if not rules:
        yield Step("rights", "-", f"none of {len(rights.book.rules)} rules fits", rights.whose)
    yield from (Step("rights", "-", text, rights.whose) for text in _circumstances(case))
    word = decide(case)
    yield Step("rights", word.behavior, f"with the mode {rights.mode}: {word.reason}", rights.whose)


def _circumstances(case: Case) -> Iterator[str]:
    if case.protected is not None:
        yield f"{case.protected} is protected"
    if case.outside:
        yield "the path lies outside of the workspace"
    if case.read_only:
        yield "it only reads"


def _of_command(rights: Rights, tool: AnyTool, verdict: Decision) -> Iterator[Step]:
    about = [rule for rule in rights.book.rules if rule.tool in (tool.name, "*")]
    yield Step("rights", "-", f"{len(about)} rules about commands, the mode {rights.mode}", rights.whose)
    yield Step("rights", verdict.behavior, f"the analysis of the command: {verdict.reason}", rights.whose)


def _after(subject: Subject, ctx: ToolContext, verdict: Decision, around: Around, *, someone: bool) -> Iterator[Step]:
    if isinstance(subject, CommandSubject):
        yield Step("sandbox", "-", f"the sandbox is {ctx.sandbox.state}")
    if verdict.behavior != "ask":
        return
    if around.classifier:
        yield Step("classifier", "-", "is not heard: only a person may answer" if verdict.firm else "would be heard")
    yield Step("person", "ask" if someone else "deny", "would be asked" if someone else "nobody is there to be asked")
