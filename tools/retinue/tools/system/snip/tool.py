"""Snip: a stretch of the agent's own conversation, replaced by a note."""

from __future__ import annotations

from pydantic import Field

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
from retinue.tools.ports import Stretch
from retinue.tools.system.snip.constants import EMPTY_NOTE, EMPTY_STRETCH, MAX_NOTE
from retinue.tools.text import counted


class SnipInput(ToolInput):
    oldest: int = Field(ge=1, description="How many exchanges back the stretch begins")
    newest: int = Field(ge=1, description="How many exchanges back the stretch ends; at most `oldest`")
    note: str = Field(max_length=MAX_NOTE, description="What stands in its place: all that is still needed of it")


class SnipOutput(ToolData):
    exchanges: int
    freed_tokens: int


class Snip(Tool[SnipInput, SnipOutput]):
    name = "Snip"
    group = "system"
    needs = ("history",)
    search_hint = "remove old messages from the context"
    should_defer = True
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "Replace a stretch of your own conversation by a note"

    def title(self, args: SnipInput) -> str:
        return f"Snip {counted(_length(args), 'exchange')}"

    async def validate_input(self, args: SnipInput, ctx: ToolContext) -> Validation:
        if args.newest > args.oldest:
            return Refused("`newest` lies before `oldest`: the stretch is empty.", EMPTY_STRETCH)
        if not args.note.strip():
            return Refused("The note is empty: say what is still needed of the stretch.", EMPTY_NOTE)
        return None

    async def check_permissions(self, args: SnipInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it touches only the agent's own context", "tool")

    async def call(self, args: SnipInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[SnipOutput]:
        if ctx.history is None:
            raise ToolError("This agent's conversation cannot be shortened.")
        freed = await ctx.history.snip(ctx.key, Stretch(args.oldest, args.newest), args.note.strip())
        return ToolResult(SnipOutput(exchanges=_length(args), freed_tokens=freed))

    def to_content(self, data: SnipOutput) -> str:
        return (
            f"{counted(data.exchanges, 'exchange')} replaced by the note; about {data.freed_tokens} tokens are freed."
        )


def _length(args: SnipInput) -> int:
    return args.oldest - args.newest + 1
