"""An agent's ports to its team: the board, mail, children, budget, status. The same over actors and in one process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.identity import envelope_id
from retinue.agents.mail.envelopes import Envelope, Receipt, Text
from retinue.agents.model.messages import Usage
from retinue.agents.ports import Reservation
from retinue.orchestrator.merging.submission import (
    parse_submission,
    parse_sync,
    place_of,
    submission_script,
    sync_with_tip,
)
from retinue.orchestrator.runtime.port import Address, TeamApi, Unreachable
from retinue.orchestrator.team.board import Submission
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.errors import EnvironmentProblem, RetinueError, ToolError
from retinue.tools.execution.calls import LeasePort
from retinue.tools.ports import (
    ChildOutcome,
    ChildRequest,
    MailAnswer,
    MailDraft,
    RunningCommand,
    ShellOutcome,
    ShellPort,
    ShellRequest,
    TaskAnswer,
    TaskChange,
    TaskDraft,
    TaskView,
)
from retinue.tools.team.crew_ports import PeerView

log = logging.getLogger(__name__)
T = TypeVar("T")

GIT_S = 120.0
"""Deadline of the agent's own git when it hands in work or moves to the tip; hooks of the repository may run in it."""
CHILD_WAIT_S = 10.0
RETRY_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""How long to wait for a team that is being restarted, in all about half a minute; then the call fails, repeatably."""


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat an idempotent call while the team cannot be reached."""
    for delay in RETRY_S:
        try:
            return await call()
        except Unreachable:
            await asyncio.sleep(delay)
    return await call()


@dataclass(frozen=True, slots=True)
class OwnShell:
    """Implements `ShellPort`: marks every command with its owner, so that what a killed process left can be found."""

    shell: ShellPort
    owner: str

    async def start(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> RunningCommand:
        return await self.shell.start(self._marked(request), on_output, max_chars=max_chars)

    async def run(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> ShellOutcome:
        return await self.shell.run(self._marked(request), on_output, max_chars=max_chars)

    def _marked(self, request: ShellRequest) -> ShellRequest:
        return replace(request, tag=f"{self.owner}/{request.tag}")


@dataclass(slots=True)
class AgentShell:
    """Runs our commands as the agent: in its worktree, with its environment, under its exclusive lease."""

    boot: AgentBoot
    shell: ShellPort
    lease: LeasePort
    env: Mapping[str, str]

    async def run(self, command: str, what: str) -> str:
        """Output of a command that succeeded or refused in words. Raises ToolError when it did neither."""
        root = Path(self.boot.workspace.root)
        output = Path(self.boot.run_dir) / "tmp" / f"{self.boot.agent}-{what}.out"
        async with self.lease.hold(f"{what}", exclusive=True) as lease:
            outcome = await self.shell.run(
                ShellRequest(
                    command=command,
                    cwd=root,
                    env=self.env,
                    timeout_s=GIT_S,
                    output_file=output,
                    keep_fds=lease.fds,
                    tag=what,
                )
            )
        if outcome.timed_out:
            raise ToolError(f"{what} did not finish within {GIT_S:.0f} s: {outcome.output[-500:]}")
        return outcome.output


@dataclass(slots=True)
class TeamBoard:
    """Implements `BoardPort`. Completing hands the worktree's work in; claiming moves a settled branch to the tip."""

    boot: AgentBoot
    team: TeamApi
    as_agent: AgentShell
    depot: Depot | None
    merges: bool

    async def create(self, key: str, draft: TaskDraft) -> TaskAnswer:
        return await patiently(lambda: self.team.create_task(self.boot.agent, key, draft))

    async def update(self, key: str, change: TaskChange) -> TaskAnswer:
        submission = None
        if change.status == "completed" and self.depot is not None:
            submission = await self._hand_in(change, self.depot)
        answer = await patiently(lambda: self.team.update_task(self.boot.agent, key, change, submission))
        if answer.ok and change.status == "in_progress" and self.depot is not None:
            moved = await self._move_to_tip(self.depot)
            if moved:
                answer = answer.model_copy(update={"text": f"{answer.text} {moved}"})
        return answer

    async def get(self, task_id: str) -> TaskView | None:
        return await patiently(lambda: self.team.get_task(task_id))

    async def list(self) -> tuple[TaskView, ...]:
        return await patiently(self.team.list_tasks)

    async def _hand_in(self, change: TaskChange, depot: Depot) -> Submission | None:
        """Commit what is there, unless the board would refuse anyway; then it says why, and nothing is committed."""
        task = await self.get(change.task_id)
        if task is None or task.status != "in_progress" or task.owner != self.boot.name:
            return None
        message = f"{task.subject}\n\nTask: {task.id}\n"
        script = submission_script(message, place_of(depot.workspace(self.boot.agent)))
        handed = parse_submission(await self.as_agent.run(script, "submission"))
        return Submission(handed.branch, handed.sha) if self.merges else None

    async def _move_to_tip(self, depot: Depot) -> str:
        tasks = await self.list()
        merged = [t for t in tasks if t.owner == self.boot.name and t.status == "merged" and t.sha]
        base = self.boot.workspace.base_sha or depot.facts.base_sha
        try:
            place = place_of(depot.workspace(self.boot.agent))
            sync = sync_with_tip(await depot.tip(), place, base=base, last_merged=merged[-1].sha if merged else None)
            return parse_sync(await self.as_agent.run(sync.script, "sync")).text if sync is not None else ""
        except ToolError as error:
            # The claim stands all the same.
            return f"Your branch was not moved to the team's tip: {error}"


DeliverTo = Callable[[Address, Envelope], Awaitable[Receipt]]
"""Straight to the process that an address names; raises Unreachable."""


@dataclass(slots=True)
class TeamMail:
    """Implements `MailPort`: straight to the recipient's process, and past the team only when that does not answer.

    One envelope per recipient is on its way at a time, and its id is the same on every way, so nothing is doubled
    or overtaken.
    """

    boot: AgentBoot
    team: TeamApi
    straight: DeliverTo
    ways: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    known: dict[str, tuple[Address, ...]] = field(default_factory=dict[str, tuple[Address, ...]])

    async def send(self, key: str, draft: MailDraft) -> MailAnswer:
        addresses = self.known.get(draft.to)
        if addresses is None:
            resolved = await patiently(lambda: self.team.resolve(self.boot.agent, draft.to))
            if resolved.refusal:
                return MailAnswer(ok=False, text=resolved.refusal)
            addresses = self.known[draft.to] = resolved.addresses
        body = Text(text=draft.text, summary=draft.summary)
        receipts = await asyncio.gather(*(self._one(key, a, body, draft.to) for a in addresses))
        bad = [r for r in receipts if r.outcome not in ("stored", "duplicate")]
        if bad:
            return MailAnswer(ok=False, text=f"{_told(bad[0])}; {len(receipts) - len(bad)} of {len(receipts)} stored")
        return MailAnswer(ok=True, text=f"stored for {', '.join(a.name for a in addresses)}")

    async def _one(self, key: str, address: Address, body: Text, to: str) -> Receipt:
        envelope = Envelope(
            id=envelope_id(self.boot.run, self.boot.agent, key, address.agent),
            sender=self.boot.agent,
            recipient=address.agent,
            body=body,
            causation=key,
        )
        async with self.ways.setdefault(address.agent, asyncio.Lock()):
            if address.incarnation:
                try:
                    return await self.straight(address, envelope)
                except Unreachable:
                    pass
            self.known.pop(to, None)
            return await patiently(lambda: self.team.deliver(envelope))


def _told(receipt: Receipt) -> str:
    if receipt.outcome == "full":
        return f"refused: mailbox full. {receipt.text}".strip()
    return receipt.text or receipt.outcome


@dataclass(slots=True)
class TeamChildren:
    """Implements `ChildPort`: a long wait made of short questions."""

    boot: AgentBoot
    team: TeamApi

    async def run(self, key: str, request: ChildRequest) -> ChildOutcome:
        started = await patiently(lambda: self.team.start_child(self.boot.agent, key, request))
        if not started.ok:
            return ChildOutcome(ok=False, text=started.text)
        while True:
            outcome = await patiently(lambda: self.team.await_child(started.agent, CHILD_WAIT_S))
            if outcome is not None:
                return outcome


@dataclass(slots=True)
class TeamPeers:
    """Implements `PeersPort`: the agents of this run, as the team knows them."""

    boot: AgentBoot
    team: TeamApi

    async def peers(self) -> tuple[PeerView, ...]:
        return await patiently(lambda: self.team.peers(self.boot.agent))


@dataclass(slots=True)
class TeamBudget:
    """Implements `BudgetPort`; a team that cannot be reached grants nothing, and the agent waits for it."""

    boot: AgentBoot
    team: TeamApi

    async def reserve(self, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        try:
            return await patiently(lambda: self.team.reserve(self.boot.agent, step, model, tokens, settled))
        except Unreachable as error:
            raise EnvironmentProblem(f"the team cannot be reached: {error}") from error

    async def reserve_side(self, key: str, model: str, tokens: int) -> Reservation:
        try:
            return await patiently(lambda: self.team.reserve_side(self.boot.agent, key, model, tokens))
        except Unreachable as error:
            raise EnvironmentProblem(f"the team cannot be reached: {error}") from error

    async def settle_side(self, key: str, model: str, used: Usage) -> None:
        await patiently(lambda: self.team.settle_side(self.boot.agent, key, model, used))


@dataclass(slots=True)
class TeamStatus:
    """Implements `StatusPort`: the newest status is on its way, older ones that were not sent yet are dropped."""

    team: TeamApi
    newest: AgentStatus | None = None
    sending: asyncio.Task[None] | None = None

    def report(self, status: AgentStatus) -> None:
        self.newest = status
        if self.sending is None or self.sending.done():
            self.sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self.newest is not None:
            status, self.newest = self.newest, None
            try:
                await patiently(lambda s=status: self.team.report(s))
            except Unreachable:
                log.warning("the team could not be told that %s is %s", status.agent, status.state)

    async def settle(self) -> None:
        """Wait until what was reported has arrived."""
        if self.sending is not None:
            await asyncio.gather(self.sending, return_exceptions=True)


@dataclass(slots=True)
class DepotCheckpoint:
    """Implements `CheckpointPort`. A checkpoint that fails is reported and does not stop the agent."""

    boot: AgentBoot
    depot: Depot | None

    async def checkpoint(self) -> str | None:
        if self.depot is None:
            return None
        try:
            return await self.depot.checkpoint(self.boot.agent)
        except RetinueError as error:
            log.warning("no checkpoint of %s: %s", self.boot.agent, error)
            return None
