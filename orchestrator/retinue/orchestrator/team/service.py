"""A running team without its actor: what agents ask of it, what the human asks of it, and the loop that tends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from retinue.agents.boot import AgentStatus
from retinue.agents.mail.envelopes import Body, Envelope, Receipt, TaskAssigned, TaskReturned, Text
from retinue.agents.model.messages import Usage
from retinue.agents.ports import Reservation
from retinue.orchestrator.ledger.records import (
    AgentEnded,
    BackgroundAsked,
    BudgetSpent,
    PhaseChanged,
    Reminded,
    RunPhase,
    TaskChanged,
    WorkSubmitted,
)
from retinue.orchestrator.runtime.port import AgentOutcome, AgentRuntime, ChildStarted, Resolved
from retinue.orchestrator.team.board import Outcome, Submission
from retinue.orchestrator.team.budget import Budget
from retinue.orchestrator.team.children import Children, Definitions
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.crew import Crew
from retinue.orchestrator.team.ending import (
    AskAbout,
    Assign,
    Finish,
    GiveUp,
    Move,
    Remind,
    Rest,
    Wait,
    at_rest,
    hand_out,
)
from retinue.orchestrator.team.merges import MergePort
from retinue.orchestrator.team.nudges import about_background, reminder
from retinue.orchestrator.team.peers import peers_of
from retinue.orchestrator.team.post import Post
from retinue.orchestrator.team.quiet import Quiet
from retinue.orchestrator.team.sleepers import WORDS
from retinue.orchestrator.team.state import MemberState
from retinue.orchestrator.team.supervision import RestartPolicy
from retinue.orchestrator.team.uptime import Uptime
from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import ChildOutcome, ChildRequest, TaskAnswer, TaskChange, TaskDraft, TaskView
from retinue.tools.team.crew_ports import PeerView

log = logging.getLogger(__name__)


class Ended(NamedTuple):
    """Where the work of a run is: in words for the summary, and the user's branch that holds it, if any."""

    text: str
    result: str = ""


OnFinish = Callable[[bool], Awaitable[Ended]]
"""Called once when the run ends by itself."""


class TeamService:
    """Implements `TeamApi`. All state is in `core.state`; everything that outlives the process is in the ledger."""

    def __init__(
        self,
        core: TeamCore,
        runtime: AgentRuntime,
        budget: Budget,
        definitions: Definitions,
        on_finish: OnFinish,
        started_at: float | None = None,
        uptime: Uptime | None = None,
    ) -> None:
        self.core = core
        self.budget = budget
        self.finished = asyncio.Event()
        self._on_finish = on_finish
        self.crew = Crew(core, runtime, RestartPolicy(), self._ended)
        self.post = Post(core, self.crew)
        self.children = Children(core, self.crew, definitions)
        self._merges: MergePort | None = None
        self._announced: set[str] = set()
        self._spent: set[str] = set()
        self._ending = False
        self._quiet = Quiet(core, self.crew)
        self._started_at = core.now() if started_at is None else started_at
        self._uptime = uptime or Uptime()

    # --- life ---------------------------------------------------------------------------------------------------------

    async def open(self, merges: MergePort, *, restarted: bool = False) -> None:
        """Man every station and begin to tend: a new run, a resumed one, or, with `restarted`, a team whose process
        died. That one goes on with what it was doing, which may be to end."""
        self._merges = merges
        for member in self.core.state.living():
            self.budget.open(member.boot.agent, member.boot.limits)
        await self.crew.adopt()
        phase = self.core.state.phase
        if phase in ("done", "failed") or (restarted and phase in ("draining", "stopped")):
            await self._end_again(phase)
            return
        if phase != "running":
            await self.core.record(PhaseChanged(phase="running"))
        await merges.catch_up()
        await self._announce_ready()
        await self.crew.muster()
        self.core.own(self._tend())
        self.core.own(self._end_in_time())
        self.core.stir()

    async def _end_in_time(self) -> None:
        """The wall limit ends a run also when nobody asks for another request."""
        wall = self.core.plan.limits.wall_s
        if wall is None:
            return
        await asyncio.sleep(max(0.0, wall - self._uptime.since(self._started_at, self.core.now())))
        text = f"the run has used its {wall:.0f} s (limits.wall)"
        await self.core.record(BudgetSpent(scope="run", text=text))
        await self._finish(False, text)

    async def _end_again(self, phase: RunPhase) -> None:
        await self.crew.drain()
        if phase == "draining":
            await self._close("stopped", "resume continues it")
        self.finished.set()

    async def drain(self) -> dict[str, str]:
        """Stop resumably: every agent finishes its step. Says how each of them ended."""
        await self._close("draining", "")
        told = await self.crew.drain()
        await self._close("stopped", "resume continues it")
        await self.core.close()
        self.finished.set()
        return told

    async def stop_hard(self) -> None:
        await self._close("draining", "stopped hard")
        await self.crew.kill_all()
        await self._close("stopped", "stopped hard; resume continues it")
        await self.core.close()
        self.finished.set()

    async def _close(self, phase: RunPhase, detail: str) -> None:
        """A run ends also when its disk is full. What could not be written is decided again by the next `resume`."""
        try:
            await self.core.record(PhaseChanged(phase=phase, detail=detail))
        except EnvironmentProblem as problem:
            log.warning("%s could not be recorded: %s", phase, problem)

    # --- the board ----------------------------------------------------------------------------------------------------

    async def create_task(self, agent: str, key: str, draft: TaskDraft) -> TaskAnswer:
        outcome = self.core.state.board.create(key, self._name(agent), draft)
        return await self._changed(outcome, self._name(agent), key)

    async def update_task(self, agent: str, key: str, change: TaskChange, submission: Submission | None) -> TaskAnswer:
        name = self._name(agent)
        outcome = self.core.state.board.update(key, name, change, submission)
        answer = await self._changed(outcome, name, key)
        if outcome.changed and change.status == "completed" and submission is not None:
            await self.core.record(
                WorkSubmitted(task_id=change.task_id, agent=agent, branch=submission.branch, sha=submission.sha)
            )
            assert self._merges is not None
            self._merges.submit(change.task_id, agent, submission)
        return answer

    async def get_task(self, task_id: str) -> TaskView | None:
        return self.core.state.board.get(task_id)

    async def list_tasks(self) -> tuple[TaskView, ...]:
        return self.core.state.board.all()

    async def _changed(self, outcome: Outcome, by: str, key: str) -> TaskAnswer:
        for task in outcome.changed:
            mine = outcome.answer.task is not None and task.id == outcome.answer.task.id
            await self.core.record(
                TaskChanged(task=task, by=by, key=key if mine else "", answer=outcome.answer if mine else None)
            )
        if outcome.changed:
            await self._announce_ready()
            self.core.stir()
        return outcome.answer

    async def tasks_changed(self, tasks: Sequence[TaskView], by: str = "team") -> None:
        """The team itself changed tasks (the merge queue, a death)."""
        await self._changed(Outcome(TaskAnswer(ok=True, text=""), tuple(tasks)), by, "")

    async def returned(self, holder: str, agent: str, mail_id: str, body: TaskReturned) -> None:
        """The merge queue sends work back: to its author, or past it to the lead."""
        leads = [m.boot.agent for m in self.core.state.living() if m.boot.role == "lead"]
        receiver = leads[0] if holder == "lead" and leads else agent
        self.core.sending += 1
        self.core.own(self._send(receiver, mail_id, body))

    async def queue_halted(self, reason: str) -> None:
        await self._finish(False, f"the merge queue has halted: {reason}")

    async def _announce_ready(self) -> None:
        """Tell each owner of a ready task, once; a repeated envelope is dropped by its id."""
        for task in self.core.state.board.ready():
            mark = f"assign/{task.id}/{task.owner}"
            if task.owner is None or mark in self._announced:
                continue
            owner = self.core.state.by_name(task.owner)
            if owner is None or owner.ended is not None:
                continue
            self._announced.add(mark)
            body = TaskAssigned(task_id=task.id, subject=task.subject, description=task.description)
            self.core.sending += 1
            self.core.own(self._send(owner.boot.agent, mark, body))

    async def _send(self, agent: str, mail_id: str, body: Body) -> None:
        try:
            receipt = await self.post.send(agent, mail_id, body)
            if receipt.outcome not in ("stored", "duplicate"):
                log.warning("mail %s to %s: %s", mail_id, agent, receipt)
                self._announced.discard(mail_id)
        finally:
            self.core.sending -= 1
            self.core.stir()

    # --- mail, children, budget, status -------------------------------------------------------------------------------

    async def resolve(self, agent: str, to: str) -> Resolved:
        return self.post.resolve(agent, to)

    async def peers(self, agent: str) -> tuple[PeerView, ...]:
        return peers_of(agent, self.core.state.members.values(), lambda peer: self.crew.station(peer).status)

    async def deliver(self, envelope: Envelope) -> Receipt:
        return await self.post.deliver(envelope)

    async def start_child(self, agent: str, key: str, request: ChildRequest) -> ChildStarted:
        started = await self.children.start(agent, key, request)
        if started.ok:
            self.budget.open(started.agent, self.core.state.members[started.agent].boot.limits)
        return started

    async def await_child(self, child: str, wait_s: float) -> ChildOutcome | None:
        return await self.children.wait(child, wait_s)

    async def reserve(self, agent: str, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        self.budget.settle(agent, step - 1, model, settled)
        elapsed, own_elapsed = self._elapsed(agent)
        return await self._told_once(agent, self.budget.reserve(agent, step, model, tokens, elapsed, own_elapsed))

    async def reserve_side(self, agent: str, key: str, model: str, tokens: int) -> Reservation:
        elapsed, own_elapsed = self._elapsed(agent)
        return await self._told_once(agent, self.budget.reserve_side(agent, key, model, tokens, elapsed, own_elapsed))

    async def settle_side(self, agent: str, key: str, model: str, used: Usage) -> None:
        self.budget.settle_side(agent, key, model, used)

    def _elapsed(self, agent: str) -> tuple[float, float]:
        """How long the run, and the agent, have been there."""
        now = self.core.now()
        starts = self.core.state.members[agent].starts
        return self._uptime.since(self._started_at, now), self._uptime.since(starts[0], now) if starts else 0.0

    async def _told_once(self, agent: str, answer: Reservation) -> Reservation:
        if not answer.ok and answer.text not in self._spent:
            self._spent.add(answer.text)
            await self.core.record(BudgetSpent(scope=agent, text=answer.text))
        return answer

    async def report(self, status: AgentStatus) -> None:
        station = self.crew.station(status.agent)
        known = station.status
        if known is not None and status.incarnation < known.incarnation:
            return
        station.status = status
        if status.state in ("idle", "stopped", "failed") or status.asleep:
            self.core.stir()

    async def send_from_human(self, to: str, mail_id: str, text: str) -> Receipt:
        return await self.post.from_human(to, mail_id, Text(text=text))

    async def stop_agent(self, name: str) -> str:
        member = self.core.state.by_name(name)
        if member is None or member.ended is not None:
            return f"there is no living agent {name}"
        how = await self.crew.stop(member, "stopped by the human")
        await self.tasks_changed(self.core.state.board.release(member.boot.name))
        return how

    async def _ended(self, member: MemberState, outcome: AgentOutcome) -> None:
        if self._ending:
            return
        agent = member.boot.agent
        if member.boot.role == "child":
            account = self.budget.agents[agent]
            await self.children.on_ended(member, outcome, account.requests, account.tokens)
            return
        await self.core.record(AgentEnded(agent=agent, why=outcome.how))
        await self.tasks_changed(self.core.state.board.release(member.boot.name))

    # --- tending ------------------------------------------------------------------------------------------------------

    async def _tend(self) -> None:
        """Woken by every change that could matter; decides nothing itself."""
        while not self.finished.is_set():
            await self.core.bell.wait()
            self.core.bell.clear()
            if self.core.state.phase != "running":
                return
            for move in hand_out(self.core.state.board.all(), self._quiet.resting()):
                await self._do(move)
            if self._merges is not None and not self._merges.busy and await self._quiet.everybody():
                state = self.core.state
                rest = Rest(self.core.now() - self._quiet.since, frozenset(state.asked))
                for move in at_rest(state.board.all(), self._quiet.resting(), state.reminders, rest):
                    await self._do(move)
            for wake in self._quiet.to_wake():
                await self.post.send(wake.agent, wake.mail_id, WORDS)

    async def _do(self, move: Move) -> None:
        board = self.core.state.board
        match move:
            case Assign(task_id, owner):
                await self.tasks_changed([board.given(task_id, owner)])
            case Remind(task_id, owner):
                await self._remind(task_id, owner)
            case Wait(seconds):
                self.core.stir_in(seconds)
            case AskAbout(owner, tasks):
                await self._ask_about(owner, tasks)
            case GiveUp(task_id, why):
                await self.tasks_changed([board.failed(task_id, why)])
            case Finish(ok, detail):
                await self._finish(ok, detail)

    async def _remind(self, task_id: str, owner: str) -> None:
        member = self.core.state.by_name(owner)
        assert member is not None
        await self.core.record(Reminded(task_id=task_id, agent=member.boot.agent))
        mail_id = f"remind/{task_id}/{self.core.state.reminders[task_id]}"
        await self.post.send(member.boot.agent, mail_id, reminder(task_id))

    async def _ask_about(self, owner: str, tasks: tuple[str, ...]) -> None:
        member = self.core.state.by_name(owner)
        assert member is not None
        agent = member.boot.agent
        await self.core.record(BackgroundAsked(agent=agent, tasks=tasks))
        body = about_background(tasks, self.crew.background_of(agent))
        await self.post.send(agent, f"ask-about/{','.join(tasks)}", body)

    async def _finish(self, ok: bool, detail: str) -> None:
        if self._ending:
            return
        self._ending = True
        await self.crew.end_background()  # before anything is taken from their workspaces
        ended = await self._on_finish(ok)
        text = "; ".join(p for p in (detail, ended.text) if p)
        await self.core.record(PhaseChanged(phase="done" if ok else "failed", detail=text, result=ended.result))
        await self.crew.drain()
        self.finished.set()

    def _name(self, agent: str) -> str:
        member = self.core.state.members.get(agent)
        return member.boot.name if member is not None else agent
