"""EnterPlanMode: from here on the agent only looks, and writes a plan."""

from __future__ import annotations

from retinue.tools.base import (
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.system import planning

_NOBODY = 1


class EnterPlanModeInput(ToolInput):
    """It takes nothing."""


class EnterPlanModeOutput(ToolData):
    """`message` is all that there is to know; `file` is where the plan goes."""

    message: str
    file: str


class EnterPlanMode(Tool[EnterPlanModeInput, EnterPlanModeOutput]):
    name = "EnterPlanMode"
    group = "system"
    needs = ("plan",)
    search_hint = "plan first, design before changing"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Plan first: only look, and write a plan to be approved"

    def is_available(self, ctx: ToolContext) -> bool:
        return ctx.plan is not None and ctx.plan.can_be_approved

    def title(self, args: EnterPlanModeInput) -> str:
        return "Begins to plan"

    async def validate_input(self, args: EnterPlanModeInput, ctx: ToolContext) -> Validation:
        """Who can never be let out again is not let in."""
        if ctx.plan is None:
            return None
        if not ctx.plan.can_be_approved:
            return Refused(
                "Nobody here could approve a plan (permissions.on_ask: deny). Think it through, and go on without.",
                _NOBODY,
            )
        return None

    async def call(
        self, args: EnterPlanModeInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[EnterPlanModeOutput]:
        if ctx.plan is None:
            raise ToolError("This agent cannot plan.")
        entry = await ctx.plan.enter(ctx.key)
        earlier = f"\n\n{planning.again(entry.file)}" if entry.again else ""
        return ToolResult(EnterPlanModeOutput(message=f"{planning.instructions(entry.file)}{earlier}", file=entry.file))

    def to_content(self, data: EnterPlanModeOutput) -> str:
        return data.message
