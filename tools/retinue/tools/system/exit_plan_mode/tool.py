"""ExitPlanMode: the plan is done; whoever may approve it says yes or no."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from retinue.tools.base import (
    Decision,
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

_NOT_PLANNING = 1
_UNSEEN = ("plan", "planFilePath", "allowedPrompts")


class ExitPlanModeInput(ToolInput):
    """The model gives nothing. `plan` and `planFilePath` are for observers; what an older model writes is not used."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    plan: str = ""
    plan_file: str = Field("", alias="planFilePath")
    allowed_prompts: JsonValue = Field(None, alias="allowedPrompts")


class ExitPlanModeOutput(ToolData):
    """`refused` says why it is not approved; `edited`: the person changed the plan first."""

    plan: str
    file: str
    approved: bool
    edited: bool = False
    refused: str = ""


class ExitPlanMode(Tool[ExitPlanModeInput, ExitPlanModeOutput]):
    name = "ExitPlanMode"
    group = "system"
    needs = ("plan",)
    search_hint = "plan is done, ask for approval"
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Have the plan approved, and begin with the work"

    def is_available(self, ctx: ToolContext) -> bool:
        """Who was made to plan hears from it that nobody can approve the plan."""
        return ctx.plan is not None and (ctx.plan.can_be_approved or ctx.plan.planning)

    def title(self, args: ExitPlanModeInput) -> str:
        return "Has a plan to be approved"

    def json_schema(self) -> dict[str, JsonValue]:
        schema = super().json_schema()
        properties = schema.get("properties")
        kept = {k: v for k, v in properties.items() if k not in _UNSEEN} if isinstance(properties, dict) else {}
        return {**schema, "properties": kept}

    def backfill_observable_input(self, args: ExitPlanModeInput, ctx: ToolContext) -> ExitPlanModeInput:
        if ctx.plan is None:
            return args
        return args.model_copy(update={"plan": ctx.plan.text(), "plan_file": str(ctx.plan.file)})

    async def validate_input(self, args: ExitPlanModeInput, ctx: ToolContext) -> Validation:
        if ctx.plan is not None and not ctx.plan.planning:
            return Refused(
                "You are not in plan mode: you have left it already, or never were in it. If a plan was approved, "
                "go on with the work.",
                _NOT_PLANNING,
            )
        return None

    async def check_permissions(self, args: ExitPlanModeInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "what it asks is asked by itself", "tool")

    async def call(
        self, args: ExitPlanModeInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ExitPlanModeOutput]:
        if ctx.plan is None:
            raise ToolError("This agent cannot plan.")
        plan, file = ctx.plan.text(), str(ctx.plan.file)
        verdict = await ctx.plan.ask(plan)
        if not verdict.approved:
            why = verdict.feedback or "no reason was given"
            return ToolResult(ExitPlanModeOutput(plan=plan, file=file, approved=False, refused=why), is_error=True)
        edited = verdict.plan is not None and verdict.plan != plan
        await ctx.plan.leave(ctx.key)
        final = verdict.plan if verdict.plan is not None else plan
        return ToolResult(ExitPlanModeOutput(plan=final, file=file, approved=True, edited=edited))

    def to_content(self, data: ExitPlanModeOutput) -> str:
        if not data.approved:
            return (
                f"The plan is not approved: {data.refused}\nYou are still in plan mode. Change the plan in {data.file} "
                "accordingly and call ExitPlanMode again, or end with a message that says what is open."
            )
        if not data.plan.strip():
            return "You have left plan mode, and there is no plan: go on with the work."
        edited = " (edited by the person)" if data.edited else ""
        return (
            "The plan is approved, and you have left plan mode: go on with the work. Keep a list with TodoWrite if it "
            f"has several steps. The plan stays in {data.file}.\n\n## Approved plan{edited}\n{data.plan}"
        )
