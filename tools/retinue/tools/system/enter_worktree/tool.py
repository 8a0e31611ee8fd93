"""EnterWorktree: go on in a further worktree of the agent's own repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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
from retinue.tools.system.ports import WorktreePlace, WorktreePort
from retinue.tools.system.worktrees import MAX_NAME, is_name
from retinue.tools.text import one_line

_BOTH, _NO_NAME, _UNKNOWN = 1, 2, 3


class EnterWorktreeInput(ToolInput):
    name: str | None = Field(None, max_length=MAX_NAME, description="Of the new worktree; made up when not given")
    path: str | None = Field(None, description="Of one that was made before, and kept; not together with `name`")


class EnterWorktreeOutput(ToolData):
    place: WorktreePlace


class EnterWorktree(Tool[EnterWorktreeInput, EnterWorktreeOutput]):
    name = "EnterWorktree"
    group = "system"
    needs = ("worktrees",)
    search_hint = "git isolated copy branch"
    should_defer = True
    idempotent = True
    needs_lease = False  # what it runs takes the lease itself

    def description(self) -> str:
        return "Work on in a further git worktree of your own"

    def title(self, args: EnterWorktreeInput) -> str:
        return f"Enter worktree {one_line(args.name or args.path or '', 80)}".rstrip()

    async def validate_input(self, args: EnterWorktreeInput, ctx: ToolContext) -> Validation:
        if args.name is not None and args.path is not None:
            return Refused("Give `name` or `path`, not both.", _BOTH)
        if args.name is not None and not is_name(args.name):
            return Refused(
                f"{args.name!r} is no name for a worktree: write letters, digits, '.', '_' and '-', with '/' between "
                "parts.",
                _NO_NAME,
            )
        port = ctx.worktrees
        if port is None:
            return None
        if args.path is not None and _kept(args.path, port) is None:
            kept = ", ".join(place.path for place in port.kept()) or "none"
            return Refused(f"{args.path} is no worktree that you made. There are: {kept}.", _UNKNOWN)
        return None

    async def check_permissions(self, args: EnterWorktreeInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it is a worktree of the agent's own repository", "tool")

    async def call(
        self, args: EnterWorktreeInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[EnterWorktreeOutput]:
        if ctx.worktrees is None:
            raise ToolError("This agent has no repository of its own, so it can make no worktrees.")
        kept = _kept(args.path, ctx.worktrees) if args.path is not None else None
        place = await ctx.worktrees.enter(ctx.key, args.name if kept is None else kept.name, anew=kept is None)
        root = Path(place.path)
        return ToolResult(
            EnterWorktreeOutput(place=place), context_modifier=lambda context: replace(context, cwd=root, root=root)
        )

    def to_content(self, data: EnterWorktreeOutput) -> str:
        place = data.place
        return (
            f"You are in the worktree {place.path} now, on branch {place.branch}. Relative paths and commands start "
            "there; your first worktree is out of reach until ExitWorktree. What you commit here reaches the team only "
            "when you merge it into your own branch there."
        )


def _kept(path: str, port: WorktreePort) -> WorktreePlace | None:
    return next((place for place in port.kept() if Path(place.path) == Path(path)), None)
