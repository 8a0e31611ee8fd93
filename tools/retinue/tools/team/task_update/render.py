"""How a change of a task looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading
from retinue.tools.team.ports import AnswerOutput
from retinue.tools.team.rendering import answer
from retinue.tools.team.task_update.tool import TaskUpdateInput


class Render(Renderer[TaskUpdateInput, AnswerOutput]):
    def use(self, args: TaskUpdateInput) -> Blocks:
        changed = [args.status] if args.status else []
        changed += [f"owner {args.owner}"] if args.owner else []
        changed += [f"“{args.subject}”"] if args.subject else []
        return (Heading("Task", f"#{args.task_id.removeprefix('#')}: {', '.join(changed) or 'changed'}"),)

    def result(self, args: TaskUpdateInput, data: AnswerOutput) -> Blocks:
        return answer(data)
