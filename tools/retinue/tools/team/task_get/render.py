"""How one task looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Markdown
from retinue.tools.render.words import several
from retinue.tools.team.rendering import board
from retinue.tools.team.task_get.tool import TaskGetInput, TaskGetOutput


class Render(Renderer[TaskGetInput, TaskGetOutput]):
    def use(self, args: TaskGetInput) -> Blocks:
        return (Heading("Task", f"#{args.task_id.removeprefix('#')}"),)

    def result(self, args: TaskGetInput, data: TaskGetOutput) -> Blocks:
        text = (Markdown(data.task.description),) if data.task.description else ()
        return (board([data.task]), *text)

    def grouped(self, calls: Sequence[TaskGetInput]) -> Blocks:
        return (Heading("Look at", several((f"#{call.task_id.removeprefix('#')}" for call in calls), "task")),)
