"""Sleep: wait without holding anything, until time has passed or something comes."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import READS, Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.errors import ToolError
from retinue.tools.system.ports import WokenBy
from retinue.tools.system.sleep.constants import MAX_S
from retinue.tools.text import one_line

_WOKEN: dict[WokenBy, str] = {
    "time": "The time is over.",
    "mail": "Woken: there is mail, which follows.",
    "end": "Woken: this agent is to come to its end.",
}


class SleepInput(ToolInput):
    seconds: float = Field(gt=0, le=MAX_S, allow_inf_nan=False, description="How long at most")
    reason: str = Field("", max_length=200, description="What it waits for, in a few words")


class SleepOutput(ToolData):
    seconds: float
    woken_by: WokenBy


class Sleep(Tool[SleepInput, SleepOutput]):
    name = "Sleep"
    group = "system"
    needs = ("waiting",)
    search_hint = "wait pause for a while"
    should_defer = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Wait for some time, or until mail comes"

    def traits(self, args: SleepInput) -> Traits:
        return READS

    def title(self, args: SleepInput) -> str:
        why = f": {one_line(args.reason, 80)}" if args.reason.strip() else ""
        return f"Sleeps up to {args.seconds:g} s{why}"

    async def check_permissions(self, args: SleepInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it only waits", "tool")

    async def call(self, args: SleepInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[SleepOutput]:
        if ctx.waiting is None:
            raise ToolError("This agent cannot sleep.")
        woken = await ctx.waiting.rest(args.seconds)
        return ToolResult(SleepOutput(seconds=args.seconds, woken_by=woken))

    def to_content(self, data: SleepOutput) -> str:
        return _WOKEN[data.woken_by]
