"""A team in one process whose agents are puppets: tests say what each of them does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from retinue.agents.boot import AgentBoot, AgentLimits, AgentStatus, WorkspaceBoot
from retinue.agents.definition import builtin_definitions
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.records import MailStored
from retinue.orchestrator.ledger.records import MemberAdded, RunOpened, TaskChanged, TeamRecord
from retinue.orchestrator.runtime.port import AgentOutcome, Unreachable
from retinue.orchestrator.team.board import Submission
from retinue.orchestrator.team.budget import Account, Budget
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.team.service import Ended, TeamService
from retinue.orchestrator.team.state import TeamState
from retinue.tools.ports import TaskView

R = TypeVar("R")


def boot_of(name: str, role: str = "teammate") -> AgentBoot:
    return AgentBoot.model_validate(
        {
            "run": "r",
            "team": "t",
            "agent": f"{name}~1",
            "name": name,
            "incarnation": 0,
            "role": role,
            "definition": "coder",
            "description": name,
            "prompt": "work",
            "model": "script:s",
            "workspace": WorkspaceBoot(root="/w", isolation="none"),
            "repo": "/repo",
            "run_dir": "/run",
        }
    )


@dataclass
class Puppet:
    """One incarnation. `turn` counts the turns that mail has woken it for; it rests after each."""

    boot: AgentBoot
    mail: list[Envelope] = field(default_factory=list)
    turn: int = 0
    reachable: bool = True
    end: asyncio.Future[AgentOutcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    service: TeamService | None = None
    drained: bool = False
    came: asyncio.Event = field(default_factory=asyncio.Event)
    background: dict[str, str] = field(default_factory=dict)

    async def has_mail(self, count: int) -> None:
        while len(self.mail) < count:
            self.came.clear()
            await self.came.wait()

    async def deliver(self, envelope: Envelope) -> Receipt:
        if not self.reachable:
            raise Unreachable("gone")
        if any(m.id == envelope.id for m in self.mail):
            return Receipt(outcome="duplicate")
        self.mail.append(envelope)
        self.turn += 1
        self.came.set()
        return Receipt(outcome="stored")

    def status(self, state: str = "idle", detail: str = "") -> AgentStatus:
        return AgentStatus.model_validate(
            {
                "agent": self.boot.agent,
                "incarnation": self.boot.incarnation,
                "state": state,
                "detail": detail,
                "turn": self.turn,
                "background": self.background,
            }
        )

    async def state(self) -> AgentStatus:
        if not self.reachable:
            raise Unreachable("gone")
        return self.status()

    async def drain(self) -> None:
        self.drained = True
        self._finish(AgentOutcome(lost=False, how="drained"))

    async def interrupt(self, reason: str) -> None:
        raise AssertionError(f"nobody interrupts a puppet: {reason}")

    async def kill(self) -> None:
        self._finish(AgentOutcome(lost=True, how="killed"))

    async def ended(self) -> AgentOutcome:
        return await asyncio.shield(self.end)

    def die(self, how: str = "its process died") -> None:
        self.reachable = False
        self._finish(AgentOutcome(lost=True, how=how))

    def _finish(self, outcome: AgentOutcome) -> None:
        if not self.end.done():
            self.end.set_result(outcome)


@dataclass
class PuppetTheatre:
    """Implements `AgentRuntime`. A new incarnation finds in the journal what was stored for it, as a real one does."""

    journal: MemoryJournal
    started: list[Puppet] = field(default_factory=list)
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def start(self, boot: AgentBoot) -> Puppet:
        stored = [r.envelope for r in self.journal.of(MailStored) if r.envelope.recipient == boot.agent]
        puppet = Puppet(boot, mail=stored, turn=len(stored))
        async with self.came:
            self.started.append(puppet)
            self.came.notify_all()
        return puppet

    async def find(self, agent: str, incarnation: int) -> Puppet | None:
        for puppet in self.started:
            if (puppet.boot.agent, puppet.boot.incarnation) == (agent, incarnation) and puppet.reachable:
                return puppet
        return None

    async def wait_for(self, name: str, incarnation: int) -> Puppet:
        async with asyncio.timeout(5), self.came:
            while True:
                for puppet in self.started:
                    if (puppet.boot.name, puppet.boot.incarnation) == (name, incarnation):
                        return puppet
                await self.came.wait()


@dataclass
class MemoryJournal:
    """Implements `JournalPort`; `changed` wakes whoever waits for a record."""

    records: list[TeamRecord] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def record(self, *records: TeamRecord) -> None:
        async with self.changed:
            self.records += records
            self.changed.notify_all()

    def of(self, kind: type[R]) -> list[R]:
        return [r for r in self.records if isinstance(r, kind)]

    async def wait_for(self, kind: type[R], count: int = 1) -> R:
        async with asyncio.timeout(5), self.changed:
            while len(self.of(kind)) < count:
                await self.changed.wait()
        return self.of(kind)[count - 1]


@dataclass
class MemoryMerges:
    """Implements `MergePort`; everything that is submitted waits until the test decides."""

    submitted: list[tuple[str, str, Submission]] = field(default_factory=list)
    busy: bool = False

    async def catch_up(self) -> None:
        """Nothing was left half done."""

    def submit(self, task_id: str, agent: str, submission: Submission) -> None:
        self.submitted.append((task_id, agent, submission))
        self.busy = True


@dataclass
class Stage:
    """A team that was put together, not opened yet."""

    service: TeamService
    journal: MemoryJournal
    theatre: PuppetTheatre
    merges: MemoryMerges
    finished: list[bool]

    async def open(self, *, restarted: bool = False) -> None:
        await self.service.open(self.merges, restarted=restarted)

    async def rest(self, *puppets: Puppet) -> None:
        for puppet in puppets:
            await self.service.report(puppet.status())


def stage(names: list[str], tasks: list[TaskView], *, lead: str | None = None, wall_s: float | None = None) -> Stage:
    boots = tuple(boot_of(name, "lead" if name == lead else "teammate") for name in names)
    plan = LaunchPlan(
        run="r",
        team="t",
        day="2026-01-01",
        repo="/repo",
        base_kind="head",
        base_sha="a" * 40,
        strategy="merge",
        into=None,
        members=boots,
        tasks=tuple(tasks),
        limits=AgentLimits(wall_s=wall_s),
        script_folder="/",
        locks_dir="/locks",
    )
    state = TeamState()
    for record in _first(plan):
        state.apply(record)
    journal, merges, finished = MemoryJournal(), MemoryMerges(), list[bool]()
    theatre = PuppetTheatre(journal)
    core = TeamCore(plan, state, journal, lambda _boot: {"PATH": "/bin"}, now=lambda: 0.0)

    async def on_finish(ok: bool) -> Ended:
        finished.append(ok)
        return Ended("the work is on retinue/r/result", "retinue/r/result")

    budget = Budget(Account(AgentLimits()), lambda _model, _usage: 0.0)
    service = TeamService(core, theatre, budget, builtin_definitions().get, on_finish)
    return Stage(service, journal, theatre, merges, finished)


def successor(team: Stage) -> Stage:
    """The team's next process: knows what the ledger says, and finds the agents that live."""
    plan = team.service.core.plan
    state = TeamState()
    for record in (*_first(plan), *team.journal.records):
        state.apply(record)
    core = TeamCore(plan, state, team.journal, lambda _boot: {"PATH": "/bin"}, now=lambda: 0.0)

    async def on_finish(ok: bool) -> Ended:
        team.finished.append(ok)
        return Ended("")

    budget = Budget(Account(AgentLimits()), lambda _model, _usage: 0.0)
    service = TeamService(core, team.theatre, budget, builtin_definitions().get, on_finish)
    return Stage(service, team.journal, team.theatre, team.merges, team.finished)


def _first(plan: LaunchPlan) -> list[TeamRecord]:
    opened = RunOpened(
        run=plan.run,
        team=plan.team,
        repo=plan.repo,
        base_kind=plan.base_kind,
        base_sha=plan.base_sha,
        result_ref="refs/heads/retinue/r/result",
        strategy="merge",
        usd=None,
        requests=None,
        tokens=None,
        wall_s=None,
    )
    members = [MemberAdded(boot=boot) for boot in plan.members]
    return [opened, *members, *(TaskChanged(task=task, by="spec") for task in plan.tasks)]
