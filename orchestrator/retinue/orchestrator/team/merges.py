"""The merge queue at work: its core decides; this runs git and checks, and tells board, ledger and authors."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, assert_never

from retinue.agents.identity import name_of
from retinue.agents.mail.envelopes import TaskReturned
from retinue.orchestrator.ledger.records import MergeIntended, WorkMerged, WorkReturned, WorkSubmitted
from retinue.orchestrator.merging.git_merge import Candidate, Conflict, Strategy, build_candidate
from retinue.orchestrator.merging.queue import (
    Broke,
    Build,
    Built,
    Effect,
    Event,
    Halt,
    Intend,
    Intended,
    Item,
    Land,
    MergeQueue,
    Moved,
    MoveTip,
    Passed,
    Rejected,
    Return,
    State,
    Submitted,
    TipElsewhere,
    Verify,
)
from retinue.orchestrator.merging.verify import Check, CommandRunner, verify
from retinue.orchestrator.team.board import Submission
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.workspaces.bare import GuardTripped
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Identity
from retinue.tools.errors import InvariantBroken, RetinueError, StateError
from retinue.tools.ports import TaskView

log = logging.getLogger(__name__)

RETURN_CHARS = 4_000
"""Of what a check said, as it is recorded and mailed: the same before and after a restart."""

Reason = Literal["conflict", "done_when", "verify", "nothing_submitted"]


class MergeHost(Protocol):
    """What the queue needs of the team around it."""

    async def tasks_changed(self, tasks: Sequence[TaskView], by: str = "team") -> None: ...
    async def returned(self, holder: str, agent: str, mail_id: str, body: TaskReturned) -> None: ...
    async def queue_halted(self, reason: str) -> None: ...


Mirror = Callable[[str], Awaitable[None]]
"""Shows a new tip in the user's repository; raises StateError when it had to leave it alone."""


@dataclass(slots=True)
class MergeDriver:
    """Implements `MergePort`. One effect at a time; what fails of the machinery is an event too."""

    core: TeamCore
    depot: Depot
    queue: MergeQueue
    runner: CommandRunner
    mirror: Mirror
    host: MergeHost
    effects: deque[Effect] = field(default_factory=deque[Effect])
    work: asyncio.Event = field(default_factory=asyncio.Event)
    acting: bool = False

    @property
    def busy(self) -> bool:
        return self.acting or bool(self.effects) or self.queue.busy

    def submit(self, task_id: str, agent: str, submission: Submission) -> None:
        self._feed(Submitted(task_id, agent, submission.branch, submission.sha))

    async def catch_up(self) -> None:
        """The queue's word counts: what it landed or returned, board and author hear of now, and again is no harm.
        What an agent was told is submitted, and the queue never heard of, it hears of now."""
        board = self.core.state.board
        coming = {effect.item.task for effect in self.effects if not isinstance(effect, Halt)}
        if self.queue.tip != self.core.plan.base_sha:
            await self._show(self.queue.tip)
        for task in list(board.tasks.values()):
            item = self.queue.items.get(task.id)
            if task.id in coming:
                continue
            if task.status == "verifying" and (item is None or item.sha != task.sha):
                await self._submit_late(task)
            elif item is None:
                continue
            elif item.state is State.LANDED and task.status == "verifying":
                await self.host.tasks_changed([board.merged(task.id, item.sha)])
            elif item.state is State.RETURNED and task.status in ("verifying", "in_progress"):
                await self._give_back(item, *self._last_return(task.id))

    async def _submit_late(self, task: TaskView) -> None:
        owner = self.core.state.by_name(task.owner or "")
        if owner is None or task.branch is None or task.sha is None:
            raise InvariantBroken(f"task {task.id} is with the merge queue, and nobody handed it in")
        agent = owner.boot.agent
        await self.core.record(WorkSubmitted(task_id=task.id, agent=agent, branch=task.branch, sha=task.sha))
        self.submit(task.id, agent, Submission(task.branch, task.sha))

    def _last_return(self, task_id: str) -> tuple[str, str]:
        records = [r for r in self.core.state.queue if isinstance(r, WorkReturned) and r.task_id == task_id]
        return records[-1].reason, records[-1].output

    def push(self, effects: Sequence[Effect]) -> None:
        self.effects.extend(effects)
        self.work.set()

    def _feed(self, event: Event) -> None:
        self.push(self.queue.handle(event))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.work.wait()
            self.work.clear()
            while self.effects:
                self.acting = True
                effect = self.effects.popleft()
                try:
                    await self._do(effect)
                finally:
                    self.acting = False
            self.core.stir()

    async def _do(self, effect: Effect) -> None:
        match effect:
            case Build():
                self._feed(await self._attempt(effect.item, self._build(effect)))
            case Verify():
                self._feed(await self._attempt(effect.item, self._verify(effect)))
            case Intend():
                task = effect.item.task
                await self.core.record(MergeIntended(task_id=task, tip=effect.tip, candidate=effect.candidate))
                self._feed(Intended(task))
            case MoveTip():
                self._feed(await self._move(effect))
            case Land():
                await self._land(effect)
            case Return():
                await self._return(effect)
            case Halt():
                await self.host.queue_halted(effect.reason)
            case _:
                assert_never(effect)

    async def _attempt(self, item: Item, work: Awaitable[Event]) -> Event:
        try:
            return await work
        except RetinueError as error:
            log.warning("merging task %s: %s", item.task, type(error).__name__)
            return Broke(item.task, str(error))

    async def _build(self, effect: Build) -> Event:
        item = effect.item
        try:
            await self._take(item)
        except StateError as error:
            return Rejected(item.task, "nothing_submitted", str(error))
        identity = self.depot.workspace(item.agent)
        made = await build_candidate(
            self.depot,
            effect.tip,
            item.sha,
            strategy=_strategy(self.core.plan.strategy),
            message=self._message(item),
            author=Identity(identity.name, identity.email),
        )
        match made:
            case Conflict():
                return Rejected(item.task, "conflict", made.text)
            case Candidate(kind="nothing"):
                return Built(item.task, None)
            case Candidate():
                return Built(item.task, made.sha)

    async def _take(self, item: Item) -> None:
        """A tool that an agent ran may have changed its repository's configuration: put back, it can run nothing."""
        try:
            await self.depot.take(item.agent, item.branch, item.sha)
        except GuardTripped as tripped:
            log.warning("configuration of %s put back: %s", item.agent, tripped)
            await asyncio.to_thread(self.depot.restore_configuration, item.agent)
            await self.depot.take(item.agent, item.branch, item.sha)

    def _message(self, item: Item) -> str:
        task = self.core.state.board.get(item.task)
        subject = task.subject if task is not None else item.task
        return f"{subject}\n\nTask: {item.task}\nAgent: {name_of(item.agent)}\nRun: {self.core.plan.run}\n"

    async def _verify(self, effect: Verify) -> Event:
        plan, task = self.core.plan, effect.item.task
        own = plan.done_when.get(task)
        checks = [Check("done_when", own.command, own.timeout_s)] if own else []
        checks += [Check("merge.verify", c.command, c.timeout_s) for c in plan.verify]
        setup = [Check("repo.setup", c.command, c.timeout_s) for c in plan.setup]
        verdict = await verify(self.depot, effect.candidate, checks, self.runner, setup=setup)
        if verdict.ok:
            return Passed(task)
        return Rejected(task, verdict.reason, verdict.output)

    async def _move(self, effect: MoveTip) -> Event:
        try:
            await self.depot.advance_tip(effect.tip, effect.candidate)
        except StateError:
            return TipElsewhere(effect.item.task, await self.depot.tip())
        except RetinueError as error:
            return Broke(effect.item.task, str(error))
        return Moved(effect.item.task)

    async def _land(self, effect: Land) -> None:
        item = effect.item
        await self.core.record(
            WorkMerged(task_id=item.task, agent=item.agent, sha=item.sha, tip=effect.tip, changed=effect.changed)
        )
        if effect.changed:
            await self._show(effect.tip)
        await self.host.tasks_changed([self.core.state.board.merged(item.task, item.sha)])

    async def _show(self, tip: str) -> None:
        """Work that is in the Depot is safe; who cannot be shown it now sees it after the next landing."""
        missed = await self.depot.publish_tip()
        if missed:
            log.warning("could not show the tip to %s", ", ".join(missed))
        try:
            await self.mirror(tip)
        except RetinueError as error:
            log.warning("the result branch was left alone: %s", error)

    async def _return(self, effect: Return) -> None:
        item = effect.item
        output = effect.output[:RETURN_CHARS]
        await self.core.record(
            WorkReturned(task_id=item.task, agent=item.agent, sha=item.sha, reason=effect.reason, output=output)
        )
        await self._give_back(item, effect.reason, output)

    async def _give_back(self, item: Item, reason: str, output: str) -> None:
        board, task_id = self.core.state.board, item.task
        if item.holder == "human":
            await self.host.tasks_changed([board.failed(task_id, f"returned {item.returns} times, last: {reason}")])
            return
        task = board.tasks[task_id]
        if task.status == "verifying":
            task = board.returned(task_id, reason)
            await self.host.tasks_changed([task])
        body = TaskReturned(
            task_id=task_id,
            subject=task.subject,
            reason=_reason(reason),
            output=f"{reason}\n{output}".strip(),
            returns=item.returns,
        )
        await self.host.returned(item.holder, item.agent, f"returned/{task_id}/{item.returns}/{item.holder}", body)


def _strategy(text: str) -> Strategy:
    return "rebase" if text == "rebase" else "merge"


def _reason(text: str) -> Reason:
    if text.startswith("done_when"):
        return "done_when"
    if text.startswith("merge.verify"):
        return "verify"
    return "nothing_submitted" if text == "nothing_submitted" else "conflict"


class MergePort(Protocol):
    """What the team's service asks of the queue."""

    @property
    def busy(self) -> bool:
        """Something waits, is checked, or is about to land."""
        ...

    async def catch_up(self) -> None:
        """Finish what the team's death left half done between the queue and the board."""
        ...

    def submit(self, task_id: str, agent: str, submission: Submission) -> None: ...
