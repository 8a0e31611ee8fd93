"""What the task tools show alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.tools.ports import TaskView
from retinue.tools.render.blocks import Blocks, Line, Table
from retinue.tools.team.ports import AnswerOutput


def answer(data: AnswerOutput) -> Blocks:
    return (Line(data.text, "dim" if data.ok else "bad"),)


def board(tasks: Iterable[TaskView]) -> Table:
    """One row a task."""
    return Table(
        ("id", "status", "owner", "task", "blocked by"),
        tuple(
            (f"#{task.id}", task.status, task.owner or "", task.subject, ", ".join(f"#{i}" for i in task.open_blockers))
            for task in tasks
        ),
    )
