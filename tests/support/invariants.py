"""What must hold in the ledger of every run, whatever died in it. `assert_invariants(run_dir)` is the whole of it.

Reads the ledger alone, so it works on a live run, on one that was lost, and on one that is over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.history import Conversation
from retinue.agents.mail.envelopes import end_of
from retinue.agents.records import (
    AgentRecord,
    MailStored,
    MessageWithdrawn,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
)
from retinue.orchestrator.ledger.frames import OPENED, Record
from retinue.orchestrator.ledger.history import mail_recipient
from retinue.orchestrator.ledger.parse import parse_agent_record, parse_team_record
from retinue.orchestrator.ledger.reader import read_all
from retinue.orchestrator.ledger.records import (
    TEAM_WRITER,
    AgentEnded,
    IncarnationStarted,
    MemberAdded,
    MergeIntended,
    PhaseChanged,
    RunOpened,
    TaskChanged,
    WorkMerged,
)
from retinue.tools.errors import InvariantBroken
from retinue.tools.ports import TaskStatus
from retinue.tools.registry.builtin import builtin_tools

FINAL: tuple[TaskStatus, ...] = ("merged", "done", "failed", "deleted")
REPEATABLE = frozenset(tool.name for tool in builtin_tools() if tool.idempotent)


def assert_invariants(run_dir: Path) -> None:
    """Fails with every broken invariant of the run in this directory, one a line."""
    broken = violations(run_dir / "ledger.rlog")
    assert not broken, "\n".join(broken)


def violations(ledger: Path) -> list[str]:
    """Of a run that is `done`, also that nothing is left over: mail, calls, tasks."""
    written = list(read_all(ledger, voided=True))
    counted = list(read_all(ledger))
    done = _phase(counted) == "done"
    return [
        *_incarnations(written),
        *_unsafe_calls(written),
        *_conversations(counted, done=done),
        *_mail(counted, done=done),
        *_tasks(counted, done=done),
    ]


def _phase(records: Iterable[Record]) -> str:
    phase = "running"
    for record in records:
        if isinstance(typed := _team(record), PhaseChanged):
            phase = typed.phase
    return phase


def _team(record: Record) -> object:
    return parse_team_record(record.kind, record.body) if record.writer == TEAM_WRITER else None


def _agent(record: Record) -> AgentRecord | None:
    return parse_agent_record(record.kind, record.body) if record.writer != TEAM_WRITER else None


# --- processes --------------------------------------------------------------------------------------------------------


def _incarnations(records: Iterable[Record]) -> list[str]:
    """Each process of a writer has a higher number than the one before, and the team said so first."""
    wrong: list[str] = []
    opened: dict[str, int] = {}
    announced: dict[str, int] = {}
    for record in records:
        if isinstance(typed := _team(record), IncarnationStarted):
            if typed.incarnation <= announced.get(typed.agent, 0):
                wrong.append(f"incarnation {typed.incarnation} of {typed.agent} was started a second time")
            announced[typed.agent] = typed.incarnation
        if record.kind != OPENED:
            continue
        if record.incarnation <= opened.get(record.writer, 0):
            wrong.append(f"incarnation {record.incarnation} of {record.writer} opened after a later one")
        if record.writer != TEAM_WRITER and record.incarnation > announced.get(record.writer, 0):
            wrong.append(f"incarnation {record.incarnation} of {record.writer} was made by nobody")
        opened[record.writer] = record.incarnation
    return wrong


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Workspaces:
    """Which agent's unsafe call is at work where, and since when. `effects` is how long each took, by agent and call.

    A call's end is recorded after its lease was given back, so another agent's call may be recorded in between: of
    others, what counts is how long the effect took. An agent's own calls come one after the other in the ledger too.
    """

    effects: dict[tuple[str, str], float]
    roots: dict[str, str] = field(default_factory=dict[str, str])
    running: defaultdict[str, dict[tuple[str, str], float]] = field(
        default_factory=lambda: defaultdict[str, dict[tuple[str, str], float]](dict)
    )

    def root(self, agent: str) -> str:
        return self.roots.get(agent, agent)

    def beside(self, agent: str, at: float) -> list[str]:
        """The calls that are still at work when one of `agent` starts."""
        return [
            f"{call} of {other}"
            for (other, call), since in self.running[self.root(agent)].items()
            if other == agent or since + self.effects.get((other, call), float("inf")) > at
        ]

    def died(self, agent: str) -> None:
        running = self.running[self.root(agent)]
        for key in [key for key in running if key[0] == agent]:
            del running[key]


def _unsafe_calls(records: Iterable[Record]) -> list[str]:
    """A call with effects of its own starts once at most, and alone in its workspace.

    Looks at what replaced incarnations wrote as well: what they did was done.
    """
    wrong: list[str] = []
    starts = Counter[tuple[str, int, str]]()
    records = list(records)
    places = _Workspaces(_effects(records))
    for record in records:
        typed = _team(record)
        if isinstance(typed, MemberAdded):
            places.roots[typed.boot.agent] = typed.boot.workspace.root
        if record.kind == OPENED:
            places.died(record.writer)
        match _agent(record):
            case ToolStarted() as started if not started.read_only and started.tool not in REPEATABLE:
                starts[(record.writer, started.step, started.call_id)] += 1
                beside = places.beside(record.writer, record.at)
                if beside:
                    wrong.append(f"{started.call_id} of {record.writer} starts while {', '.join(beside)} runs")
                places.running[places.root(record.writer)][(record.writer, started.call_id)] = record.at
            case ToolFinished(result=result):
                places.running[places.root(record.writer)].pop((record.writer, result.call_id), None)
            case _:
                pass
    wrong += [f"{call} of {agent} in step {step} ran {n} times" for (agent, step, call), n in starts.items() if n > 1]
    return wrong


def _effects(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for record in records:
        typed = _agent(record)
        if isinstance(typed, ToolFinished):
            found[(record.writer, typed.result.call_id)] = typed.result.effect_s
    return found


def _conversations(records: Iterable[Record], *, done: bool) -> list[str]:
    """Records of each agent come in an order that makes sense, and every call of a closed step has one result."""
    wrong: list[str] = []
    conversations: defaultdict[str, Conversation] = defaultdict(Conversation)
    for record in records:
        agent = mail_recipient(record) or record.writer
        typed = parse_agent_record(record.kind, record.body)
        if typed is None or agent == TEAM_WRITER:
            continue
        conversation = conversations[agent]
        if isinstance(typed, StepClosed) and conversation.open is not None:
            missing = [c.id for c in conversation.open.calls() if c.id not in conversation.open.finished]
            wrong += [f"{call} of {agent} has no result, and its step {typed.step} is closed" for call in missing]
        if isinstance(typed, MessageWithdrawn) and conversation.open is not None:
            ran = [s.call_id for s in conversation.open.started.values() if not s.read_only]
            wrong += [f"{call} of {agent} ran, and its message was withdrawn" for call in ran]
        try:
            conversation.apply(typed)
        except InvariantBroken as error:
            wrong.append(f"{agent}: {error}")
    if done:
        wrong += [f"{agent} was left in the middle of a step" for agent, c in conversations.items() if c.open]
    return wrong


# --- mail -------------------------------------------------------------------------------------------------------------


def _mail(records: Iterable[Record], *, done: bool) -> list[str]:
    """Each message is in one request of its recipient at most; when the run is done, in exactly one."""
    wrong: list[str] = []
    stored: dict[str, str] = {}
    used = Counter[str]()
    ended: set[str] = set()
    told: set[str] = set()
    for record in records:
        typed = parse_agent_record(record.kind, record.body)
        if isinstance(gone := _team(record), AgentEnded):
            ended.add(gone.agent)
        if isinstance(typed, MailStored):
            known = stored.setdefault(typed.envelope.id, typed.envelope.recipient)
            if known != typed.envelope.recipient:
                wrong.append(f"mail {typed.envelope.id} is for {known} and for {typed.envelope.recipient}")
        if isinstance(typed, RequestSent):
            wrong += _taken(record.writer, typed.mail, stored)
            used.update(typed.mail)
        if isinstance(typed, ToolFinished):
            told.update(map(end_of, typed.result.told))
    wrong += [f"mail {mail} to {stored.get(mail)} was read {n} times" for mail, n in used.items() if n > 1]
    if done:
        read = used.keys() | told
        lost = [mail for mail, recipient in stored.items() if mail not in read and recipient not in ended]
        wrong += [f"mail {mail} to {stored[mail]} was never read" for mail in lost]
    return wrong


def _taken(agent: str, mail: Sequence[str], stored: dict[str, str]) -> list[str]:
    return [f"{agent} read {one}, which is for {stored.get(one, 'nobody')}" for one in mail if stored.get(one) != agent]


# --- work -------------------------------------------------------------------------------------------------------------


def _tasks(records: Iterable[Record], *, done: bool) -> list[str]:
    """A task ends once; work lands once, on top of what landed before; when the run is done, all of it has."""
    wrong: list[str] = []
    status: dict[str, TaskStatus] = {}
    merged = Counter[str]()
    tip = ""
    merges = True
    for record in records:
        match _team(record):
            case RunOpened(base_sha=base, strategy=strategy):
                tip, merges = base, strategy != "none"
            case TaskChanged(task=task):
                if status.get(task.id) in FINAL and status[task.id] != task.status:
                    wrong.append(f"task {task.id} was {status[task.id]} and became {task.status}")
                status[task.id] = task.status
            case MergeIntended(task_id=task_id, tip=onto) if onto != tip:
                wrong.append(f"task {task_id} was to land on {onto}, and the tip was {tip}")
            case WorkMerged() as landed:
                merged[landed.task_id] += 1
                tip = landed.tip
            case _:
                pass
    wrong += [f"task {task} landed {n} times" for task, n in merged.items() if n > 1]
    if done:
        wrong += [
            f"task {task} is {s}, and the run is done" for task, s in status.items() if s not in FINAL or s == "failed"
        ]
        wrong += [f"task {t} is merged and never landed" for t, s in status.items() if s == "merged" and not merged[t]]
        wrong += [f"task {t} landed and is {status.get(t)}" for t in merged if merges and status.get(t) != "merged"]
    return wrong
