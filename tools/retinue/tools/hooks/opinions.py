"""The hooks around a call, as the pipeline and the permission chain ask them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from pydantic import JsonValue, ValidationError

from retinue.tools.base import AnyTool, Behavior, Decision, ToolContext, ToolData, ToolInput
from retinue.tools.errors import SpecError
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.stages import Afterthought, Opinion
from retinue.tools.hooks.engine import Hooks
from retinue.tools.hooks.match import Call
from retinue.tools.hooks.merge import Verdict
from retinue.tools.hooks.payloads import PermissionRequest, PostToolUse, PostToolUseFailure, PreToolUse
from retinue.tools.hooks.words import told


class LearnPort(Protocol):
    def learn(self, behavior: Behavior, rule: str) -> None:
        """A rule for the rest of the session. SpecError: it is none."""
        ...


@dataclass(frozen=True, slots=True)
class ToolHooks:
    """Implements `OpinionPort`, `AfterPort` and `RequestPort`.

    fit     shortens what is too long for the agent, and says where the whole is
    rights  where the rules of an answer go
    """

    hooks: Hooks
    fit: Callable[[str], str] = str
    rights: LearnPort | None = None

    async def opinion(self, tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Opinion | None:
        """PreToolUse. That the turn ends is a no, too: nothing more is begun in it."""
        if not self.hooks.has("PreToolUse"):
            return None
        payload = PreToolUse(cwd=str(ctx.cwd), tool_name=tool.name, tool_input=_input(args), tool_use_id=ctx.call_id)
        verdict = await self.hooks.fire(payload, Call(tool, args, ctx))
        decision = Decision("deny", verdict.halt, "hook") if verdict.halt is not None else verdict.decision
        return Opinion(decision, verdict.updated_input, self._notes("PreToolUse", verdict))

    async def request(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Decision | None:
        """PermissionRequest."""
        if not self.hooks.has("PermissionRequest"):
            return None
        suggestions = [_suggestion(rule) for rule in asked.question.suggestions] if asked.question else []
        payload = PermissionRequest(
            cwd=str(ctx.cwd),
            tool_name=tool.name,
            tool_input=_input(tool.backfill_observable_input(args, ctx)),
            permission_suggestions=suggestions or None,
        )
        verdict = await self.hooks.fire(payload, Call(tool, args, ctx))
        if verdict.halt is not None:
            return Decision("deny", verdict.halt, "hook")
        self._learn(verdict, asked)
        said = verdict.decision
        if said is None or said.behavior != "allow" or verdict.updated_input is None:
            return said
        return Decision("allow", said.reason, said.source, updated_input=verdict.updated_input)

    async def succeeded(
        self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult, data: ToolData
    ) -> Afterthought | None:
        """PostToolUse."""
        if not self.hooks.has("PostToolUse"):
            return None
        payload = PostToolUse(
            cwd=str(ctx.cwd),
            tool_name=tool.name,
            tool_input=_input(args),
            tool_response=cast(JsonValue, data.model_dump(mode="json")),
            tool_use_id=ctx.call_id,
            duration_ms=round(result.effect_s * 1_000),
        )
        verdict = await self.hooks.fire(payload, Call(tool, args, ctx))
        return Afterthought(self._notes("PostToolUse", verdict), _replaced(tool, data, verdict.updated_output))

    async def failed(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult) -> Afterthought | None:
        """PostToolUseFailure."""
        if not self.hooks.has("PostToolUseFailure"):
            return None
        payload = PostToolUseFailure(
            cwd=str(ctx.cwd),
            tool_name=tool.name,
            tool_input=_input(args),
            error=result.content,
            tool_use_id=ctx.call_id,
            duration_ms=round(result.effect_s * 1_000),
        )
        verdict = await self.hooks.fire(payload, Call(tool, args, ctx))
        return Afterthought(self._notes("PostToolUseFailure", verdict))

    def _notes(self, event: str, verdict: Verdict) -> tuple[str, ...]:
        return tuple(told(event, self.fit(text)) for text in (*verdict.blocked, *verdict.contexts))

    def _learn(self, verdict: Verdict, asked: Decision) -> None:
        """What a hook allows is never made a habit where only a person may answer."""
        for behavior, rule in verdict.rules:
            if self.rights is None or (behavior == "allow" and asked.firm):
                continue
            try:
                self.rights.learn(behavior, rule)
            except SpecError:
                continue


def _input(args: ToolInput) -> dict[str, JsonValue]:
    """What was given, and what was left out that has a meaning; nothing that is None."""
    return args.model_dump(mode="json", exclude_none=True)


def _suggestion(rule: str) -> dict[str, JsonValue]:
    name, _, content = rule.partition("(")
    written: dict[str, JsonValue] = {"toolName": name}
    if content:
        written["ruleContent"] = content.removesuffix(")")
    return {"type": "addRules", "rules": [written], "behavior": "allow", "destination": "session"}


def _replaced(tool: AnyTool, data: ToolData, output: JsonValue) -> str | None:
    """A text stands as it is; an object must be what the tool itself could have found."""
    if output is None or isinstance(output, str):
        return output
    try:
        return tool.to_content(type(data).model_validate(output))
    except ValidationError:
        return None
