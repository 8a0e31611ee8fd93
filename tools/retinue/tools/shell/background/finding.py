"""What the tools for background tasks share: their port, and a clear word when there is no such task."""

from __future__ import annotations

from retinue.tools.base import Decision, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.shell.background.ports import BackgroundPort
from retinue.tools.shell.background.words import listed
from retinue.tools.text import one_line

ALLOWED = Decision("allow", "it concerns only commands that this agent has started itself", "tool")


def found(ctx: ToolContext, task_id: str) -> BackgroundPort:
    """The port, which knows that task. ToolError naming the tasks that there are."""
    port = ctx.background
    if port is None:
        raise ToolError("This agent has no background tasks.")
    tasks = port.all()
    if not any(task.id == task_id for task in tasks):
        board = " TaskGet shows the tasks of the board." if task_id.lstrip("#").isdigit() else ""
        raise ToolError(f"There is no background task {one_line(task_id, 60)}. {listed(tasks)}{board}")
    return port
