"""TaskList: the board at a glance."""

from __future__ import annotations

from retinue.tools.base import READS, Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.ports import TaskView
from retinue.tools.team.ports import ALLOWED, connected, task_line


class TaskListInput(ToolInput):
    pass


class TaskListOutput(ToolData):
    tasks: tuple[TaskView, ...]


class TaskList(Tool[TaskListInput, TaskListOutput]):
    name = "TaskList"
    group = "agents"
    needs = ("board",)
    search_hint = "show the task list"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Show the task board at a glance"

    def traits(self, args: TaskListInput) -> Traits:
        return READS

    def title(self, args: TaskListInput) -> str:
        return "List tasks"

    async def check_permissions(self, args: TaskListInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: TaskListInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[TaskListOutput]:
        tasks = await connected(ctx.board, "task board").list()
        shown = tuple(task for task in tasks if task.status != "deleted" and not task.metadata.get("_internal"))
        return ToolResult(TaskListOutput(tasks=shown))

    def to_content(self, data: TaskListOutput) -> str:
        return "\n".join(task_line(task) for task in data.tasks) or "No tasks"
