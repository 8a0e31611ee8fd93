"""What the team does when its agents have come to rest: hand out work, remind, give up, or end the run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retinue.orchestrator.team.board import CLOSED
from retinue.tools.ports import TaskView
from retinue.tools.text import counted

MOST_REMINDERS = 2


@dataclass(frozen=True, slots=True)
class Resting:
    """A member that could take work: alive, idle, nothing unread. `failed` says that its last turn ended badly."""

    name: str
    role: str
    failed: str = ""


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
class Finish:
    ok: bool
    detail: str


Move = Assign | Remind | GiveUp | Finish


def hand_out(tasks: Sequence[TaskView], resting: Sequence[Resting]) -> list[Assign]:
    """Ready tasks that nobody owns go to resting teammates without open work, in order."""
    busy = {t.owner for t in tasks if t.status not in CLOSED and t.owner}
    free = [r.name for r in resting if r.role != "lead" and r.name not in busy and not r.failed]
    ready = [t for t in tasks if t.status == "pending" and t.owner is None and not t.open_blockers]
    return [Assign(task.id, name) for task, name in zip(ready, free, strict=False)]


def at_rest(tasks: Sequence[TaskView], resting: Sequence[Resting], reminders: Mapping[str, int]) -> list[Move]:
    """All agents are at rest and no work is in the queue: the only moves left. Never empty."""
    given = hand_out(tasks, resting)
    if given:
        return list(given)
    alive = {r.name: r for r in resting}
    still_open = [t for t in tasks if t.status not in CLOSED]
    moves: list[Move] = []
    for task in still_open:
        if task.open_blockers:
            continue
        moves.append(_nudge(task, alive, reminders))
    if moves:
        return moves
    stuck = [t for t in still_open if t.open_blockers]
    if stuck:
        return [GiveUp(t.id, f"blocked by {', '.join(t.open_blockers)}, which failed") for t in stuck]
    return [_verdict(tasks, resting)]


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
