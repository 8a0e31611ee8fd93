"""Everything that one agent, the team or the human may say to an agent: a closed union."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retinue.agents.model.messages import Wire
from retinue.tools.shell.background.ports import BackgroundTask

HUMAN = "human"
TEAM = "team"


class Prompt(Wire):
    """The first thing an agent is told: its part of the spec."""

    kind: Literal["prompt"] = "prompt"
    text: str


class Text(Wire):
    kind: Literal["text"] = "text"
    text: str
    summary: str = ""


class TaskAssigned(Wire):
    kind: Literal["task_assigned"] = "task_assigned"
    task_id: str
    subject: str
    description: str = ""
    by: str = TEAM


class TaskReturned(Wire):
    """The merge queue sends work back: why, and what the author can do."""

    kind: Literal["task_returned"] = "task_returned"
    task_id: str
    subject: str
    reason: Literal["conflict", "done_when", "verify", "nothing_submitted"]
    output: str
    returns: int


class Notice(Wire):
    """Something new from the team that is worth a turn (a reminder, a member lost), never a mere status."""

    kind: Literal["notice"] = "notice"
    text: str


class BackgroundEnd(Wire):
    """A command in the background of this agent has ended; from the agent to itself. `tail` is what it said last."""

    kind: Literal["background_end"] = "background_end"
    task: BackgroundTask
    tail: str = ""


class ShutdownRequest(Wire):
    kind: Literal["shutdown_request"] = "shutdown_request"
    reason: str = ""


Body = Annotated[
    Prompt | Text | TaskAssigned | TaskReturned | Notice | BackgroundEnd | ShutdownRequest, Field(discriminator="kind")
]


class Envelope(Wire):
    """One message. `id` derives from what caused it, so that sending it again is the same message.

    sender, recipient   agent ids (`name~n`), or `human`, `team`
    causation           id of the call or envelope that led to it; empty for what a human began
    """

    id: str
    sender: str
    recipient: str
    body: Body
    causation: str = ""


def end_of(task_id: str) -> str:
    """Id of the one envelope that tells an agent of the end of its background task."""
    return f"background/{task_id}"


class Receipt(Wire):
    """What became of an envelope. Only `stored` and `duplicate` mean that it is durable."""

    outcome: Literal["stored", "duplicate", "full", "no_such_agent", "failed"]
    text: str = ""
