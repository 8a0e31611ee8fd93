"""The team as the ledger tells it: a fold over records, the same for the running team, a restarted one and a viewer."""

from __future__ import annotations

from dataclasses import dataclass, field

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.ledger.records import (
    AgentEnded,
    AgentLost,
    BackgroundAsked,
    IncarnationStarted,
    MemberAdded,
    MergeIntended,
    PhaseChanged,
    Reminded,
    RunOpened,
    RunPhase,
    TaskChanged,
    TeamRecord,
    WorkMerged,
    WorkReturned,
    WorkSubmitted,
)
from retinue.orchestrator.team.board import Board

QueueRecord = WorkSubmitted | MergeIntended | WorkMerged | WorkReturned


@dataclass(slots=True)
class MemberState:
    """One agent of the run. `incarnation` is the highest that was started; `starts` are the times of all of them."""

    boot: AgentBoot
    incarnation: int = 0
    starts: tuple[float, ...] = ()
    losses: int = 0
    ended: AgentEnded | None = None


@dataclass(slots=True)
class TeamState:
    """All that the team knows, rebuilt by `apply` from its records in order.

    asked   background tasks of which their agents were asked whether the end of the run has to wait for them
    """

    opened: RunOpened | None = None
    members: dict[str, MemberState] = field(default_factory=dict[str, MemberState])
    board: Board = field(default_factory=Board)
    queue: list[QueueRecord] = field(default_factory=list[QueueRecord])
    merged_sha: dict[str, str] = field(default_factory=dict[str, str])
    reminders: dict[str, int] = field(default_factory=dict[str, int])
    asked: set[str] = field(default_factory=set[str])
    phase: RunPhase = "running"
    detail: str = ""
    result: str = ""

    def apply(self, record: TeamRecord) -> None:
        match record:
            case RunOpened():
                self.opened = record
            case MemberAdded():
                self._add(record.boot)
            case IncarnationStarted():
                member = self.members[record.agent]
                member.incarnation = record.incarnation
                member.starts = (*member.starts, record.at)
            case AgentLost():
                self.members[record.agent].losses += 1
            case AgentEnded():
                self.members[record.agent].ended = record
            case _:
                self._apply_work(record)

    def _apply_work(self, record: TeamRecord) -> None:
        match record:
            case TaskChanged():
                self.board.put(record.task)
                if record.answer is not None:
                    self.board.remember(record.key, record.answer)
            case WorkSubmitted() | MergeIntended() | WorkReturned():
                self.queue.append(record)
            case WorkMerged():
                self.queue.append(record)
                self.merged_sha[record.agent] = record.sha
            case Reminded():
                self.reminders[record.task_id] = self.reminders.get(record.task_id, 0) + 1
            case BackgroundAsked():
                self.asked.update(record.tasks)
            case PhaseChanged():
                self.phase, self.detail, self.result = record.phase, record.detail, record.result
            case _:
                _seen_only(record)

    def _add(self, boot: AgentBoot) -> None:
        self.members[boot.agent] = MemberState(boot)
        if boot.role != "child":
            self.board.members.add(boot.name)
        if boot.role == "lead":
            self.board.leads.add(boot.name)

    def living(self) -> list[MemberState]:
        return [m for m in self.members.values() if m.ended is None]

    def by_name(self, name: str) -> MemberState | None:
        """The newest agent of that name."""
        found = [m for m in self.members.values() if m.boot.name == name]
        return found[-1] if found else None


def _seen_only(record: TeamRecord) -> None:
    """Records that are there for people and for agents; the team's own state does not depend on them."""
    assert record.kind in ("mail_stored", "budget_spent"), record
    del record
