"""How it looks when an agent comes back from another worktree."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.system.exit_worktree.tool import ExitWorktreeInput, ExitWorktreeOutput
from retinue.tools.system.worktrees import loss_text


class Render(Renderer[ExitWorktreeInput, ExitWorktreeOutput]):
    def use(self, args: ExitWorktreeInput) -> Blocks:
        return (Heading("Leave worktree", args.action),)

    def result(self, args: ExitWorktreeInput, data: ExitWorktreeOutput) -> Blocks:
        left = data.left
        if left is None:
            return (Line("it was in none", "dim"),)
        heading = Heading("Leave worktree", f"{left.place.name}, {'removed' if left.removed else 'kept'}")
        lost = loss_text(left.loss) if left.removed else ""
        return (heading, Line(f"{lost}, rescued at {', '.join(left.rescued)}", "warn")) if lost else (heading,)
