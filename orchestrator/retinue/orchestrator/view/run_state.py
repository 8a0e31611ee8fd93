"""What people see of a run: a fold over all records of its ledger. Pure; the run itself is not asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from retinue.agents.mail.envelopes import Envelope, end_of
from retinue.agents.model.messages import ToolUseBlock, Usage
from retinue.agents.records import (
    AgentWaits,
    BackgroundEnded,
    BackgroundStarted,
    BlockComplete,
    InnerFinished,
    MailStored,
    MessageClosed,
    PromptRefused,
    RequestSent,
    SideAnswered,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.orchestrator.ledger.parse import AnyRecord, is_team_record
from retinue.orchestrator.ledger.records import (
    AgentEnded,
    AgentLost,
    IncarnationStarted,
    MemberAdded,
    RunOpened,
    WorkMerged,
    WorkReturned,
)
from retinue.orchestrator.team.state import TeamState
from retinue.tools.ports import TaskView
from retinue.tools.shell.background.ports import BackgroundTask

AgentState = Literal["queued", "starting", "working", "waiting", "idle", "ended"]
NOTHING_USED = Usage()
Price = Callable[[str, Usage], float | None]


@dataclass(slots=True)
class AgentView:
    """One agent as its records show it.

    doing        the tool that runs, or what it waits for
    background   commands that run without a call and without a lease
    """

    agent: str
    name: str
    role: str
    definition: str
    model: str
    incarnation: int = 0
    state: AgentState = "queued"
    doing: str = ""
    turn: int = 0
    step: int = 0
    requests: int = 0
    calls: int = 0
    failed_calls: int = 0
    denied: int = 0
    usage: Usage = NOTHING_USED
    usd: float = 0.0
    unread: set[str] = field(default_factory=set[str])
    received: int = 0
    sent: int = 0
    losses: int = 0
    merged: int = 0
    returned: int = 0
    last_text: str = ""
    ended: str = ""
    branch: str | None = None
    root: str = ""
    running: dict[str, str] = field(default_factory=dict[str, str])
    background: dict[str, BackgroundTask] = field(default_factory=dict[str, BackgroundTask])


@dataclass(slots=True)
class RunView:
    """`team` is the same fold that the running team has; the rest is what its agents wrote themselves."""

    price: Price
    team: TeamState = field(default_factory=TeamState)
    agents: dict[str, AgentView] = field(default_factory=dict[str, AgentView])
    mail: dict[str, Envelope] = field(default_factory=dict[str, Envelope])
    first_at: float | None = None
    last_at: float = 0.0
    landed: list[WorkMerged] = field(default_factory=list[WorkMerged])

    def apply(self, writer: str, at: float, record: AnyRecord) -> None:
        self.first_at = at if self.first_at is None else self.first_at
        self.last_at = max(self.last_at, at)
        if isinstance(record, MailStored):
            self._mail(record)
        elif is_team_record(record):
            self.team.apply(record)
            self._apply_team(record)
        elif writer in self.agents and isinstance(record, PromptRefused):
            self.agents[writer].unread.discard(record.mail)
        elif writer in self.agents:
            self._apply_agent(self.agents[writer], record)

    def _mail(self, record: MailStored) -> None:
        envelope = record.envelope
        if envelope.id in self.mail:
            return
        self.mail[envelope.id] = envelope
        recipient = self.agents.get(envelope.recipient)
        if recipient is not None:
            recipient.received += 1
            recipient.unread.add(envelope.id)
        sender = self.agents.get(envelope.sender)
        if sender is not None and sender is not recipient:
            sender.sent += 1

    def _apply_team(self, record: AnyRecord) -> None:
        match record:
            case MemberAdded(boot=boot):
                self.agents[boot.agent] = AgentView(
                    agent=boot.agent,
                    name=boot.name,
                    role=boot.role,
                    definition=boot.definition,
                    model=boot.model,
                    branch=boot.workspace.branch,
                    root=boot.workspace.root,
                )
            case IncarnationStarted():
                view = self.agents[record.agent]
                view.incarnation, view.state, view.doing = record.incarnation, "starting", ""
                view.running.clear()
                view.background.clear()
            case AgentLost():
                view = self.agents[record.agent]
                view.losses += 1
                view.doing = record.how
            case AgentEnded():
                view = self.agents[record.agent]
                view.state, view.ended, view.doing = "ended", record.why, ""
                view.background.clear()
            case WorkMerged():
                self.landed.append(record)
                self.agents[record.agent].merged += 1
            case WorkReturned():
                self.agents[record.agent].returned += 1
            case _:
                pass

    def _apply_agent(self, view: AgentView, record: AnyRecord) -> None:
        match record:
            case RequestSent():
                view.unread.difference_update(record.mail)
                view.state, view.doing = "working", "thinking"
                view.turn, view.step = record.turn, record.step
                view.requests += 1
            case BlockComplete(block=ToolUseBlock()):
                view.calls += 1
            case MessageClosed() | SideAnswered():
                view.usage = view.usage + record.usage
                view.usd += self.price(record.model, record.usage) or 0.0
            case ToolStarted():
                view.running[record.call_id] = record.tool
                view.doing = ", ".join(view.running.values())
            case ToolFinished(result=result) | InnerFinished(result=result):
                view.running.pop(result.call_id, None)
                view.failed_calls += result.is_error
                view.denied += result.denied
                view.unread.difference_update(map(end_of, result.told))
                view.doing = ", ".join(view.running.values()) or result.title
            case BackgroundStarted() | BackgroundEnded():
                _in_background(view, record.task)
            case StepClosed():
                view.doing = ""
            case TurnClosed():
                view.state, view.doing, view.last_text = "idle", "", record.text
            case AgentWaits():
                view.state, view.doing = "waiting", record.what
            case _:
                pass

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def opened(self) -> RunOpened | None:
        return self.team.opened

    def tasks(self) -> tuple[TaskView, ...]:
        return self.team.board.all()

    def usage(self) -> Usage:
        total = Usage()
        for agent in self.agents.values():
            total = total + agent.usage
        return total

    def usd(self) -> float:
        return sum(a.usd for a in self.agents.values())

    def task_of(self, name: str) -> TaskView | None:
        held = [t for t in self.tasks() if t.owner == name and t.status in ("in_progress", "verifying")]
        return held[0] if held else None

    @property
    def over(self) -> bool:
        return self.team.phase in ("done", "failed", "stopped")


def _in_background(view: AgentView, task: BackgroundTask) -> None:
    if task.is_running:
        view.background[task.id] = task
    else:
        view.background.pop(task.id, None)
