"""Asks all hooks about a call at once, before it and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from retinue.tools.base import AnyTool, Decision, ToolContext, ToolData, ToolInput
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.errors_of import error_class_of
from retinue.tools.execution.stages import AfterPort, Afterthought, ClassifierPort, Opinion, OpinionPort


@dataclass(frozen=True, slots=True)
class Heard:
    """What all hooks said of a call together. Of several new inputs the last stands."""

    decision: Decision | None = None
    updated_input: Mapping[str, JsonValue] | None = None
    notes: tuple[str, ...] = ()


async def before(opinions: Sequence[OpinionPort], tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Heard:
    """Side by side; the strictest decision stands. Who fails to answer says no."""
    if not opinions:
        return Heard()
    answers = await asyncio.gather(*(each.opinion(tool, args, ctx) for each in opinions), return_exceptions=True)
    decision: Decision | None = None
    updated: Mapping[str, JsonValue] | None = None
    notes: list[str] = []
    for answer in answers:
        if isinstance(answer, BaseException):
            answer = Opinion(Decision("deny", f"a check before the call failed ({error_class_of(answer)})"))
        if answer is None:
            continue
        if answer.decision is not None:
            decision = answer.decision if decision is None else decision | answer.decision
        updated = answer.updated_input if answer.updated_input is not None else updated
        notes += answer.notes
    return Heard(decision, updated, tuple(notes))


async def after(
    hooks: Sequence[AfterPort],
    tool: AnyTool,
    args: ToolInput,
    ctx: ToolContext,
    result: CallResult,
    data: ToolData | None,
) -> Afterthought:
    """Side by side. The effect is done: a hook that fails cannot change what it was, and is not heard."""

    asked = (
        each.failed(tool, args, ctx, result)
        if result.is_error or data is None
        else each.succeeded(tool, args, ctx, result, data)
        for each in hooks
    )
    answers = await asyncio.gather(*asked, return_exceptions=True)
    said = [answer for answer in answers if isinstance(answer, Afterthought)]
    contents = [each.content for each in said if each.content is not None]
    return Afterthought(tuple(note for each in said for note in each.notes), contents[-1] if contents else None)


def guess(
    classifier: ClassifierPort | None, tool: AnyTool, args: ToolInput, ctx: ToolContext
) -> asyncio.Task[Decision | None] | None:
    """Sets the classifier to work; None when nobody guesses about this call. The task does not fail: it cannot say."""
    text = tool.classifier_input(args) if classifier is not None else ""
    if classifier is None or not text:
        return None
    return asyncio.create_task(_guess(classifier, tool, text, ctx), name=f"guess about {tool.name}")


async def _guess(classifier: ClassifierPort, tool: AnyTool, text: str, ctx: ToolContext) -> Decision | None:
    try:
        return await classifier.classify(tool, text, ctx)
    except Exception:
        return None
