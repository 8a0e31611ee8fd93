"""Runs as they lie on disk afterwards, for what only reads them: no process ever ran in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from retinue.agents.boot import AgentBoot, WorkspaceBoot
from retinue.agents.mail.envelopes import Envelope, Text
from retinue.agents.model.messages import TextBlock, ToolUseBlock, Usage, Wire
from retinue.agents.records import (
    BlockComplete,
    MailStored,
    MessageClosed,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.orchestrator.ledger.parse import body_of
from retinue.orchestrator.ledger.records import (
    IncarnationStarted,
    MemberAdded,
    PhaseChanged,
    RunOpened,
    RunPhase,
    TaskChanged,
    WorkMerged,
    WorkSubmitted,
)
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.orchestrator.state.paths import RunDir, StateDir
from retinue.tools.execution.calls import CallResult
from retinue.tools.ports import TaskView

BASE, DONE, TIP = "b" * 40, "d" * 40, "e" * 40
STARTED_AT = 1_750_000_000.0


def boot(run: str, name: str, role: Literal["lead", "teammate"] = "teammate") -> AgentBoot:
    return AgentBoot(
        run=run,
        team="shop",
        agent=f"{name}~1",
        name=name,
        incarnation=1,
        role=role,
        definition="coder",
        description=f"{name} writes code",
        prompt="Work.",
        model="script:play.yaml",
        workspace=WorkspaceBoot(root=f"/wt/{name}~1", isolation="worktree", branch=f"retinue/{run}/{name}.1/work"),
        repo="/repo",
        run_dir=f"/state/{run}",
    )


@dataclass
class PastRun:
    """Writes a ledger as a team and its agents would, one second a record."""

    dir: RunDir
    now: float = STARTED_AT
    writers: dict[str, LedgerWriter] = field(default_factory=dict[str, LedgerWriter])

    @classmethod
    def make(cls, state: StateDir, run: str) -> PastRun:
        return cls(state.create(run))

    def clock(self) -> float:
        self.now += 1.0
        return self.now

    def write(self, writer: str, *records: Wire) -> None:
        if writer not in self.writers:
            self.writers[writer] = LedgerWriter.open(self.dir.ledger, writer, 1, self.clock)
        self.writers[writer].append_many_sync([body_of(record) for record in records])

    def team(self, *records: Wire) -> None:
        self.write("team", *records)

    def begin(self, *names: str, tasks: Iterable[TaskView] = ()) -> PastRun:
        run = self.dir.run_id
        self.team(
            RunOpened(
                run=run,
                team="shop",
                repo="/repo",
                base_kind="head",
                base_sha=BASE,
                result_ref=f"refs/heads/retinue/{run}/result",
                strategy="merge",
                usd=5.0,
                requests=200,
                tokens=None,
                wall_s=3600.0,
            ),
            *(MemberAdded(boot=boot(run, name)) for name in names),
            *(TaskChanged(task=task, by="team") for task in tasks),
            *(IncarnationStarted(agent=f"{name}~1", incarnation=1, at=self.now) for name in names),
        )
        return self

    def turn(self, name: str, text: str = "I have mended it.", *, title: str = "Read shelf/money.py") -> PastRun:
        call = CallResult(call_id="c1", name="Read", content="1\tone", ran=True, title=title)
        self.write(
            f"{name}~1",
            RequestSent(turn=1, step=1),
            BlockComplete(turn=1, step=1, index=0, block=TextBlock(text=text)),
            BlockComplete(turn=1, step=1, index=1, block=ToolUseBlock(id="c1", name="Read")),
            MessageClosed(
                turn=1, step=1, stop_reason="tool_use", usage=Usage(input=900, output=100), model="script:play.yaml"
            ),
            ToolStarted(turn=1, step=1, call_id="c1", tool="Read", read_only=True),
            ToolFinished(turn=1, step=1, result=call),
            StepClosed(turn=1, step=1),
            TurnClosed(turn=1, reason="done", text=text),
        )
        return self

    def mail(self, sender: str, recipient: str, text: str) -> PastRun:
        envelope = Envelope(
            id=f"mail-{self.now}", sender=f"{sender}~1", recipient=f"{recipient}~1", body=Text(text=text)
        )
        self.write(f"{recipient}~1", MailStored(envelope=envelope))
        return self

    def merged(self, task: TaskView, name: str) -> PastRun:
        agent = f"{name}~1"
        self.team(
            WorkSubmitted(task_id=task.id, agent=agent, branch=f"retinue/r/{name}.1/work", sha=DONE),
            WorkMerged(task_id=task.id, agent=agent, sha=DONE, tip=TIP, changed=True),
            TaskChanged(task=task.model_copy(update={"status": "merged", "owner": name}), by="team"),
        )
        return self

    def phase(self, phase: RunPhase, detail: str = "") -> PastRun:
        self.team(PhaseChanged(phase=phase, detail=detail))
        return self

    def close(self) -> RunDir:
        """Nothing is written any more."""
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()
        return self.dir


MONEY = TaskView(id="money", subject="Prices are rounded down", owner="ada")
STOCK = TaskView(id="stock", subject="Items are not ordered", owner="ben", blocked_by=("money",))


def shop_done(state: StateDir, run: str = "shop-done") -> RunDir:
    """Two agents, two tasks, both merged."""
    past = PastRun.make(state, run).begin("ada", "ben", tasks=(MONEY, STOCK))
    past.turn("ada").mail("ada", "ben", "money is mended").merged(MONEY, "ada").turn("ben").merged(STOCK, "ben")
    return past.phase("done").close()
