"""How a new task looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading
from retinue.tools.render.words import several
from retinue.tools.team.ports import AnswerOutput
from retinue.tools.team.rendering import answer
from retinue.tools.team.task_create.tool import TaskCreateInput


class Render(Renderer[TaskCreateInput, AnswerOutput]):
    def use(self, args: TaskCreateInput) -> Blocks:
        return (Heading("New task", args.subject),)

    def result(self, args: TaskCreateInput, data: AnswerOutput) -> Blocks:
        return answer(data)

    def grouped(self, calls: Sequence[TaskCreateInput]) -> Blocks:
        return (Heading("New", several((call.subject for call in calls), "task")),)
