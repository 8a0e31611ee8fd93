"""How the board looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.team.rendering import board
from retinue.tools.team.task_list.tool import TaskListInput, TaskListOutput


class Render(Renderer[TaskListInput, TaskListOutput]):
    def use(self, args: TaskListInput) -> Blocks:
        return (Heading("Task list"),)

    def result(self, args: TaskListInput, data: TaskListOutput) -> Blocks:
        return (board(data.tasks),) if data.tasks else (Line("no tasks", "dim"),)
