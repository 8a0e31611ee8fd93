"""How an agent's list looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.people.ports import Todo, TodoStatus
from retinue.tools.people.todo_write.tool import TodoWriteInput, TodoWriteOutput, progress
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Tone

_LOOKS: dict[TodoStatus, tuple[str, Tone]] = {
    "completed": ("[x]", "dim"),
    "in_progress": ("[>]", "good"),
    "pending": ("[ ]", "plain"),
}


class Render(Renderer[TodoWriteInput, TodoWriteOutput]):
    def use(self, args: TodoWriteInput) -> Blocks:
        return (Heading("Todo", progress(args.todos)),)

    def result(self, args: TodoWriteInput, data: TodoWriteOutput) -> Blocks:
        return tuple(_line(todo) for todo in data.new_todos)

    def grouped(self, calls: Sequence[TodoWriteInput]) -> Blocks:
        """Of several lists in a row the last is the one that counts."""
        return self.use(calls[-1])


def _line(todo: Todo) -> Line:
    mark, tone = _LOOKS[todo.status]
    return Line(f"{mark} {todo.active_form if todo.status == 'in_progress' else todo.content}", tone)
