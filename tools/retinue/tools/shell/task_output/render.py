"""How a look at a command in the background looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Output
from retinue.tools.shell.background.words import standing
from retinue.tools.shell.task_output.tool import TaskOutputInput, TaskOutputOutput


class Render(Renderer[TaskOutputInput, TaskOutputOutput]):
    def use(self, args: TaskOutputInput) -> Blocks:
        return (Heading("Output of", f"task {args.task_id}"),)

    def result(self, args: TaskOutputInput, data: TaskOutputOutput) -> Blocks:
        task = data.task
        failed = task.status in ("failed", "lost")
        shown = Output(data.output, task.exit_code, failed=failed)
        return (Line(standing(task), "bad" if failed else "dim"), shown)
