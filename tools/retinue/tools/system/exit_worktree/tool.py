"""ExitWorktree: back to the agent's own worktree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

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
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.system.ports import WorktreeLeft
from retinue.tools.system.worktrees import loss_text

_LOSES = 1


class ExitWorktreeInput(ToolInput):
    action: Literal["keep", "remove"] = Field(description="What becomes of the worktree and its branch")
    discard_changes: bool = Field(default=False, description="Remove it also with work in it that is nowhere else")


class ExitWorktreeOutput(ToolData):
    """`left` is None when the agent was in no further worktree."""

    left: WorktreeLeft | None = None


class ExitWorktree(Tool[ExitWorktreeInput, ExitWorktreeOutput]):
    name = "ExitWorktree"
    group = "system"
    needs = ("worktrees",)
    search_hint = "git leave remove worktree"
    should_defer = True
    idempotent = True
    needs_lease = False  # what it runs takes the lease itself

    def description(self) -> str:
        return "Go back to your first worktree"

    def traits(self, args: ExitWorktreeInput) -> Traits:
        return Traits(destructive=args.action == "remove" and args.discard_changes)

    def title(self, args: ExitWorktreeInput) -> str:
        return "Leave the worktree" + (" and remove it" if args.action == "remove" else "")

    async def validate_input(self, args: ExitWorktreeInput, ctx: ToolContext) -> Validation:
        if ctx.worktrees is None or ctx.worktrees.current is None:
            return None
        if args.action == "remove" and not args.discard_changes and (lost := loss_text(await ctx.worktrees.loss())):
            return Refused(
                f"The worktree {ctx.worktrees.current.name} has {lost}. Commit and merge them, leave with `keep`, or, "
                "only when they are not wanted, with `discard_changes`.",
                _LOSES,
            )
        return None

    async def check_permissions(self, args: ExitWorktreeInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it is a worktree of the agent's own, and what is lost is rescued", "tool")

    async def call(
        self, args: ExitWorktreeInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ExitWorktreeOutput]:
        if ctx.worktrees is None:
            raise ToolError("This agent has no repository of its own, so it has no worktrees to leave.")
        left = await ctx.worktrees.leave(ctx.key, remove=args.action == "remove", discard=args.discard_changes)
        if left is None:
            return ToolResult(ExitWorktreeOutput())
        home = Path(left.home)
        return ToolResult(
            ExitWorktreeOutput(left=left), context_modifier=lambda context: replace(context, cwd=home, root=home)
        )

    def to_content(self, data: ExitWorktreeOutput) -> str:
        left = data.left
        if left is None:
            return "You are in your first worktree already; nothing was done."
        back = f"You are back in {left.home}."
        if not left.removed:
            return f"{back} The worktree {left.place.path} stays, with its branch {left.place.branch}."
        lost = loss_text(left.loss)
        rescued = f" It had {lost}; a person can get them back from {', '.join(left.rescued)}." if lost else ""
        return f"{back} The worktree {left.place.name} and its branch are removed.{rescued}"
