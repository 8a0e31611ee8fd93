"""How it looks when an agent goes to another worktree."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.system.enter_worktree.tool import EnterWorktreeInput, EnterWorktreeOutput


class Render(Renderer[EnterWorktreeInput, EnterWorktreeOutput]):
    def use(self, args: EnterWorktreeInput) -> Blocks:
        return (Heading("Enter worktree", args.name or args.path or ""),)

    def result(self, args: EnterWorktreeInput, data: EnterWorktreeOutput) -> Blocks:
        return (Heading("Enter worktree", data.place.name), Line(f"{data.place.path}, on {data.place.branch}", "dim"))
