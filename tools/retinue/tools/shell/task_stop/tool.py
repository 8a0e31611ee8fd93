"""TaskStop: end a command in the background."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.shell.background.finding import ALLOWED, found
from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.shell.background.words import standing
from retinue.tools.text import one_line

_NAMELESS = 1


class TaskStopInput(ToolInput):
    task_id: str | None = Field(None, description="The id that Bash answered")
    shell_id: str | None = Field(None, description="Deprecated: use task_id")

    @property
    def named(self) -> str:
        return self.task_id or self.shell_id or ""


class TaskStopOutput(ToolData):
    """`was_over`: it had ended before it was asked to."""

    task: BackgroundTask
    was_over: bool


class TaskStop(Tool[TaskStopInput, TaskStopOutput]):
    name = "TaskStop"
    group = "shell"
    needs = ("background",)
    search_hint = "end a background command"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "End a command in the background"

    def traits(self, args: TaskStopInput) -> Traits:
        return Traits(destructive=True)

    def title(self, args: TaskStopInput) -> str:
        return f"Stop task {one_line(args.named, 60)}"

    async def validate_input(self, args: TaskStopInput, ctx: ToolContext) -> Validation:
        return None if args.named else Refused("task_id is missing.", _NAMELESS)

    async def check_permissions(self, args: TaskStopInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: TaskStopInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[TaskStopOutput]:
        tasks = found(ctx, args.named)
        before = await tasks.wait(args.named, 0.0)
        task = await tasks.stop(args.named)
        return ToolResult(TaskStopOutput(task=task, was_over=not before.is_running), told=(task.id,))

    def to_content(self, data: TaskStopOutput) -> str:
        return f"It had ended before. {standing(data.task)}" if data.was_over else standing(data.task)
