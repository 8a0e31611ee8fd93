"""How the end of a command in the background looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.shell.background.words import standing
from retinue.tools.shell.task_stop.tool import TaskStopInput, TaskStopOutput


class Render(Renderer[TaskStopInput, TaskStopOutput]):
    def use(self, args: TaskStopInput) -> Blocks:
        return (Heading("Stop", f"task {args.named}"),)

    def result(self, args: TaskStopInput, data: TaskStopOutput) -> Blocks:
        return (Line(standing(data.task), "dim"),)
