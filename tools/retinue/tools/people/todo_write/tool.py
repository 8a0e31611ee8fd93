"""TodoWrite: an agent's own list of what it has to do."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict, Field

from retinue.tools.base import Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.people.ports import Todo, TodoStatus
from retinue.tools.people.todo_write.constants import MAX_TEXT, MAX_TODOS
from retinue.tools.text import counted, one_line


class TodoLine(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    content: str = Field(min_length=1, max_length=MAX_TEXT, description="What to do, imperative (Fix the parser)")
    status: TodoStatus = Field(description="How far it is")
    active_form: str = Field(
        min_length=1, max_length=MAX_TEXT, alias="activeForm", description="The same while it is done (Fixing …)"
    )


class TodoWriteInput(ToolInput):
    todos: tuple[TodoLine, ...] = Field(max_length=MAX_TODOS, description="The whole list, in the place of the old one")


class TodoWriteOutput(ToolData):
    old_todos: tuple[Todo, ...]
    new_todos: tuple[Todo, ...]


class TodoWrite(Tool[TodoWriteInput, TodoWriteOutput]):
    name = "TodoWrite"
    group = "people"
    needs = ("todos",)
    search_hint = "checklist plan progress steps"
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "Keep your own list of what there is to do"

    def title(self, args: TodoWriteInput) -> str:
        return f"Todo: {progress(args.todos)}"

    async def check_permissions(self, args: TodoWriteInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it touches only the agent's own list", "tool")

    async def call(
        self, args: TodoWriteInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[TodoWriteOutput]:
        if ctx.todos is None:
            raise ToolError("This agent has no list of its own.")
        todos = tuple(Todo(content=t.content, status=t.status, active_form=t.active_form) for t in args.todos)
        old = await ctx.todos.replace(ctx.key, todos)
        return ToolResult(TodoWriteOutput(old_todos=old, new_todos=todos))

    def to_content(self, data: TodoWriteOutput) -> str:
        if not data.new_todos:
            return "The list is empty now."
        return f"The list is kept: {progress(data.new_todos)}. Go on with what is in progress, and keep it true."


def progress(todos: Sequence[TodoLine | Todo]) -> str:
    """How far a list is, and what is being done."""
    if not todos:
        return "nothing left"
    done = sum(todo.status == "completed" for todo in todos)
    doing = next((one_line(todo.active_form, 80) for todo in todos if todo.status == "in_progress"), "")
    return f"{done} of {counted(len(todos), 'item')} done" + (f", {doing}" if doing else "")
