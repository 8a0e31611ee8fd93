"""Agents that sleep while all others rest: a long sleep holds up no end of a run. Pure, but for what it remembers.

A sleeper waits for something outside, or for the others; when those rest and no task is open, nothing of theirs will
come any more. So it is woken once it has slept on for a while, and says by what it does whether the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retinue.agents.boot import AgentStatus
from retinue.agents.mail.envelopes import Notice
from retinue.orchestrator.team.board import CLOSED
from retinue.tools.ports import TaskView

WAKE_S = 60.0
"""How long a sleep is left alone when nothing else goes on."""

WORDS = Notice(
    text="Everybody else rests and no task is open: whatever you slept for can only come from outside of the team. Go "
    "on if you know of it, and sleep again if you must; else end your turn, and the run ends."
)


@dataclass(frozen=True, slots=True)
class Wake:
    """`mail_id` is the same for the same sleep."""

    agent: str
    mail_id: str


class Sleepers:
    def __init__(self) -> None:
        self._marks: tuple[tuple[str, int, int], ...] = ()
        self._since = 0.0

    def look(
        self, statuses: Sequence[AgentStatus], tasks: Sequence[TaskView], now: float
    ) -> tuple[tuple[Wake, ...], float | None]:
        """Whom to wake, and in how many seconds to look again; `statuses` are those of all but sub-agents."""
        asleep = [status for status in statuses if status.asleep]
        rest = [status for status in statuses if not status.asleep and status.state in ("idle", "failed")]
        if not asleep or not rest or len(asleep) + len(rest) < len(statuses) or any(s.unread for s in statuses):
            return (), None
        if any(task.status not in CLOSED for task in tasks):
            return (), None
        marks = tuple((status.agent, status.turn, status.step) for status in statuses)
        if marks != self._marks:
            self._marks, self._since = marks, now
        left = self._since + WAKE_S - now
        if left > 0:
            return (), left
        return tuple(Wake(s.agent, f"wake/{s.incarnation}/{s.turn}/{s.step}") for s in asleep), None
