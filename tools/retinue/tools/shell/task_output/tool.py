"""TaskOutput: how a command in the background stands."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from retinue.tools.base import READS, Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.shell.background.finding import ALLOWED, found
from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.shell.background.words import standing
from retinue.tools.shell.output import Shown
from retinue.tools.shell.task_output.constants import (
    DEFAULT_TIMEOUT_MS,
    MAX_RESULT_CHARS,
    MAX_TIMEOUT_MS,
    NOTE_CHARS,
)
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread


class TaskOutputInput(ToolInput):
    task_id: str = Field(description="The id that Bash answered")
    block: bool = Field(True, description="Wait for its end")
    timeout: int = Field(DEFAULT_TIMEOUT_MS, ge=0, description="Milliseconds to wait, at most 600000")


class TaskOutputOutput(ToolData):
    task: BackgroundTask
    output: str
    truncated: bool


class TaskOutput(Tool[TaskOutputInput, TaskOutputOutput]):
    name = "TaskOutput"
    group = "shell"
    needs = ("background",)
    search_hint = "output of a background command"
    max_result_chars = MAX_RESULT_CHARS
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Show how a command in the background stands"

    def traits(self, args: TaskOutputInput) -> Traits:
        return READS

    def title(self, args: TaskOutputInput) -> str:
        return f"Output of task {one_line(args.task_id, 60)}"

    async def check_permissions(self, args: TaskOutputInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(
        self, args: TaskOutputInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[TaskOutputOutput]:
        tasks = found(ctx, args.task_id)
        seconds = min(args.timeout, MAX_TIMEOUT_MS) / 1000 if args.block else 0.0
        task = await tasks.wait(args.task_id, seconds)
        part = await in_thread(_shown, Path(task.output_file))
        told = () if task.is_running else (task.id,)
        return ToolResult(TaskOutputOutput(task=task, output=part.text, truncated=part.truncated), told=told)

    def to_content(self, data: TaskOutputOutput) -> str:
        output = data.output.rstrip("\n") or "(no output)"
        notes = [standing(data.task)]
        if data.truncated or data.task.is_running:
            notes.append(f"Its output goes to {data.task.output_file}")
        return "\n".join((*(f"[{note}]" for note in notes), output))


def _shown(path: Path) -> Shown:
    from retinue.tools.shell.running import read_part

    try:
        return read_part(path, MAX_RESULT_CHARS - NOTE_CHARS)
    except FileNotFoundError:
        return Shown("", truncated=False)
