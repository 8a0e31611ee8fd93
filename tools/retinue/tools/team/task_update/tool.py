"""TaskUpdate: change, take, hand over or submit a task."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from retinue.tools.base import Decision, OnProgress, Refused, Tool, ToolContext, ToolInput, ToolResult, Validation
from retinue.tools.ports import TaskChange
from retinue.tools.team.ports import ALLOWED, AnswerOutput, answered, connected
from retinue.tools.text import one_line

_NOTHING_TO_CHANGE = 1


class TaskUpdateInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, coerce_numbers_to_str=True)

    task_id: str = Field(alias="taskId", description="The task's id")
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = Field(None, description="New state")
    subject: str | None = Field(None, description="New title")
    description: str | None = Field(None, description="New description")
    active_form: str | None = Field(None, alias="activeForm", description="What to show while it is worked on")
    owner: str | None = Field(None, description="The name of whom it belongs to")
    add_blocks: tuple[str, ...] = Field((), alias="addBlocks", description="Tasks that wait for this one")
    add_blocked_by: tuple[str, ...] = Field((), alias="addBlockedBy", description="Tasks that this one waits for")
    metadata: dict[str, JsonValue] = Field(default={}, description="Merged into the task's values; null removes a key")


class TaskUpdate(Tool[TaskUpdateInput, AnswerOutput]):
    name = "TaskUpdate"
    group = "agents"
    needs = ("board",)
    search_hint = "change or submit a task"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Change, take, hand over or submit a task"

    def title(self, args: TaskUpdateInput) -> str:
        what = f": {args.status}" if args.status else ""
        return f"Task #{one_line(args.task_id)}{what}"

    async def validate_input(self, args: TaskUpdateInput, ctx: ToolContext) -> Validation:
        if args.model_fields_set <= {"task_id"}:
            return Refused("Name at least one thing to change besides taskId.", _NOTHING_TO_CHANGE)
        return None

    async def check_permissions(self, args: TaskUpdateInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: TaskUpdateInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[AnswerOutput]:
        change = TaskChange(
            task_id=args.task_id.removeprefix("#"),
            status=args.status,
            subject=args.subject,
            description=args.description,
            active_form=args.active_form,
            owner=args.owner,
            add_blocks=tuple(task.removeprefix("#") for task in args.add_blocks),
            add_blocked_by=tuple(task.removeprefix("#") for task in args.add_blocked_by),
            metadata=args.metadata,
        )
        answer = await connected(ctx.board, "task board").update(ctx.key, change)
        return ToolResult(answered(answer), is_error=not answer.ok)

    def to_content(self, data: AnswerOutput) -> str:
        return data.text
