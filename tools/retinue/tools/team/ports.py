"""What the tools of a team share: finding their port, and saying that it is not there."""

from __future__ import annotations

from typing import TypeVar

from retinue.tools.base import Decision, ToolData
from retinue.tools.errors import ToolError
from retinue.tools.ports import TaskAnswer, TaskView
from retinue.tools.text import for_model, one_line, printable

T = TypeVar("T")

ALLOWED = Decision("allow", "it touches only the team's own state", "tool")


class AnswerOutput(ToolData):
    """What the team answered; `text` is for the model."""

    ok: bool
    text: str


def connected(port: T | None, what: str) -> T:
    """ToolError when this agent was started without that part of a team."""
    if port is None:
        raise ToolError(f"This agent has no {what}: it does not run as a member of a team.")
    return port


def answered(answer: TaskAnswer) -> AnswerOutput:
    return AnswerOutput(ok=answer.ok, text=answer.text)


def untrusted(text: str) -> str:
    """Words of other agents, harmless to a terminal and to a model."""
    return for_model(printable(text))


def task_line(task: TaskView) -> str:
    """`#2 [in_progress] Title (owner) [blocked by #1]`."""
    owner = f" ({one_line(task.owner)})" if task.owner else ""
    blocked = f" [blocked by {', '.join(f'#{i}' for i in task.open_blockers)}]" if task.open_blockers else ""
    returned = f" [returned {task.returns}x]" if task.returns else ""
    return f"#{task.id} [{task.status}] {for_model(one_line(task.subject))}{owner}{blocked}{returned}"
