"""TaskGet: one task in full."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from retinue.tools.base import READS, Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.errors import ToolError
from retinue.tools.ports import TaskView
from retinue.tools.team.ports import ALLOWED, connected, task_line, untrusted
from retinue.tools.text import one_line


class TaskGetInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, coerce_numbers_to_str=True)

    task_id: str = Field(alias="taskId", description="The task's id")


class TaskGetOutput(ToolData):
    task: TaskView


class TaskGet(Tool[TaskGetInput, TaskGetOutput]):
    name = "TaskGet"
    group = "agents"
    needs = ("board",)
    search_hint = "show a task"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Show one task in full"

    def traits(self, args: TaskGetInput) -> Traits:
        return READS

    def title(self, args: TaskGetInput) -> str:
        return f"Task #{one_line(args.task_id)}"

    async def check_permissions(self, args: TaskGetInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: TaskGetInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[TaskGetOutput]:
        task = await connected(ctx.board, "task board").get(args.task_id.removeprefix("#"))
        if task is None:
            raise ToolError(f"There is no task #{one_line(args.task_id)}. TaskList shows all.")
        return ToolResult(TaskGetOutput(task=task))

    def to_content(self, data: TaskGetOutput) -> str:
        task = data.task
        parts = [task_line(task), untrusted(task.description)]
        if task.blocks:
            parts.append(f"Blocks: {', '.join(f'#{i}' for i in task.blocks)}")
        if task.branch:
            parts.append(f"Branch: {task.branch}" + (f" at {task.sha}" if task.sha else ""))
        if task.note:
            parts.append(f"Note: {untrusted(task.note)}")
        return "\n".join(part for part in parts if part)
