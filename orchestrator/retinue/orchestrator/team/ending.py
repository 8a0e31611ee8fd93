"""What the team does when its agents have come to rest: hand out work, remind, give up, or end the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retinue.orchestrator.team.board import CLOSED
from retinue.tools.ports import TaskView
from retinue.tools.text import counted

MOST_REMINDERS = 2
PATIENCE_S = 1_800.0
"""How long an owner may rest before a reminder while a background task of its own runs, whose end would wake it."""
ASK_S = 5.0
"""How long background tasks may have to end by themselves before their agents are asked about them."""


@dataclass(frozen=True, slots=True)
class Resting:
    """A member that could take work: alive, idle, nothing unread.

    failed       its last turn ended badly, and how
    background   ids of its commands that still run
    """

    name: str
    role: str
    failed: str = ""
    background: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assign:
    task_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Remind:
    task_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    task_id: str
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done for so long; then look again."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AskAbout:
    """Nothing is left but these background tasks: does anybody need their end?"""

    owner: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    ok: bool
    detail: str


Move = Assign | Remind | GiveUp | Wait | AskAbout | Finish


@dataclass(frozen=True, slots=True)
class Rest:
    """
    seconds   since the last change
    asked     background tasks that were asked about
    """

    seconds: float = 0.0
    asked: frozenset[str] = frozenset()


JUST_NOW = Rest()


def hand_out(tasks: Sequence[TaskView], resting: Sequence[Resting]) -> list[Assign]:
    """Ready tasks that nobody owns go to resting teammates without open work, in order."""
    busy = {t.owner for t in tasks if t.status not in CLOSED and t.owner}
    free = [r.name for r in resting if r.role != "lead" and r.name not in busy and not r.failed]
    ready = [t for t in tasks if t.status == "pending" and t.owner is None and not t.open_blockers]
    return [Assign(task.id, name) for task, name in zip(ready, free, strict=False)]


def at_rest(
    tasks: Sequence[TaskView], resting: Sequence[Resting], reminders: Mapping[str, int], rest: Rest = JUST_NOW
) -> list[Move]:
    """All agents are at rest and no work is in the queue: the only moves left. Never empty."""
    given = hand_out(tasks, resting)
    if given:
        return list(given)
    alive = {r.name: r for r in resting}
    still_open = [t for t in tasks if t.status not in CLOSED]
    due = [t for t in still_open if not t.open_blockers]
    overdue = [t for t in due if rest.seconds >= PATIENCE_S or not _is_awaited(alive.get(t.owner or ""))]
    if overdue:
        return [_nudge(task, alive, reminders) for task in overdue]
    if due:
        return [Wait(PATIENCE_S - rest.seconds)]
    if still_open:
        return [GiveUp(t.id, f"blocked by {', '.join(t.open_blockers)}, which failed") for t in still_open]
    return _last_words(resting, rest) or [_verdict(tasks, resting)]


def _is_awaited(owner: Resting | None) -> bool:
    """Whether something of its own is still to come that will wake it."""
    return owner is not None and bool(owner.background) and not owner.failed


def _last_words(resting: Sequence[Resting], rest: Rest) -> list[Move]:
    """Each agent is asked once about each background task, and may wait for its end; a server keeps no run open."""
    asks: list[Move] = []
    for agent in resting:
        unasked = tuple(task for task in agent.background if task not in rest.asked)
        if unasked and not agent.failed:
            asks.append(AskAbout(agent.name, unasked))
    return [Wait(ASK_S - rest.seconds)] if asks and rest.seconds < ASK_S else asks


def _nudge(task: TaskView, alive: Mapping[str, Resting], reminders: Mapping[str, int]) -> Move:
    owner = task.owner
    if owner is None or owner not in alive:
        return GiveUp(task.id, f"{owner} is gone" if owner else "no agent is left to do it")
    if alive[owner].failed:
        return GiveUp(task.id, f"{owner} stopped: {alive[owner].failed}")
    if reminders.get(task.id, 0) >= MOST_REMINDERS:
        return GiveUp(task.id, f"{owner} stopped working on it after {MOST_REMINDERS} reminders")
    return Remind(task.id, owner)


def _verdict(tasks: Sequence[TaskView], resting: Sequence[Resting]) -> Finish:
    failed = [t for t in tasks if t.status == "failed"]
    if failed:
        return Finish(ok=False, detail="; ".join(f"#{t.id} {t.subject}: {t.note}" for t in failed))
    if tasks:
        return Finish(ok=True, detail=f"{counted(len(tasks), 'task')} merged or done")
    broken = [r for r in resting if r.failed]
    if broken:
        return Finish(ok=False, detail="; ".join(f"{r.name}: {r.failed}" for r in broken))
    return Finish(ok=True, detail="all agents have finished")
