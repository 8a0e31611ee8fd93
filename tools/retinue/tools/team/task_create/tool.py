"""TaskCreate: a new task on the team's board."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from retinue.tools.base import Decision, OnProgress, Tool, ToolContext, ToolInput, ToolResult
from retinue.tools.ports import TaskDraft
from retinue.tools.team.ports import ALLOWED, AnswerOutput, answered, connected
from retinue.tools.text import one_line


class TaskCreateInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    subject: str = Field(min_length=1, description="Short title, imperative")
    description: str = Field(description="What has to be done, with all that is needed to do it")
    active_form: str = Field("", alias="activeForm", description="What to show while it is worked on (Fixing …)")
    metadata: dict[str, JsonValue] = Field(default={}, description="Further values to keep with the task")


class TaskCreate(Tool[TaskCreateInput, AnswerOutput]):
    name = "TaskCreate"
    group = "agents"
    needs = ("board",)
    search_hint = "add to the task list"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Put a new task on the team's board"

    def title(self, args: TaskCreateInput) -> str:
        return f"New task: {one_line(args.subject)}"

    async def check_permissions(self, args: TaskCreateInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: TaskCreateInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[AnswerOutput]:
        draft = TaskDraft(
            subject=args.subject,
            description=args.description,
            active_form=args.active_form,
            metadata=args.metadata,
        )
        answer = await connected(ctx.board, "task board").create(ctx.key, draft)
        return ToolResult(answered(answer), is_error=not answer.ok)

    def to_content(self, data: AnswerOutput) -> str:
        return data.text
