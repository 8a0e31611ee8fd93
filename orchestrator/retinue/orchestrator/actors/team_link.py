"""The team as agents and the command line reach it: one method here per method of the actor, with a deadline each."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from pydantic import BaseModel

from retinue.agents.boot import AgentStatus
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.model.messages import Usage
from retinue.agents.ports import Reservation
from retinue.orchestrator.actors.cluster import find
from retinue.orchestrator.actors.options import TEAM
from retinue.orchestrator.actors.wire import CALL_S, ask, pack, unpack
from retinue.orchestrator.runtime.port import ChildStarted, Resolved, Unreachable
from retinue.orchestrator.runtime.wire import (
    ChildAsk,
    ChildFound,
    ChildWait,
    CreateAsk,
    PeerList,
    ReserveAsk,
    ResolveAsk,
    SideAsk,
    SideUsed,
    TaskFound,
    TaskList,
    UpdateAsk,
)
from retinue.orchestrator.team.board import Submission
from retinue.tools.ports import ChildOutcome, ChildRequest, TaskAnswer, TaskChange, TaskDraft, TaskView
from retinue.tools.team.crew_ports import PeerView

DELIVERY_S = 45.0
"""Longer than the team itself looks for a process to deliver to."""


class TeamLink:
    """Implements `TeamApi` over the actor. Raises Unreachable while the team is being restarted."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._actor: Any = None

    async def create_task(self, agent: str, key: str, draft: TaskDraft) -> TaskAnswer:
        return unpack(TaskAnswer, await self._ask("create_task", CreateAsk(agent=agent, key=key, draft=draft)))

    async def update_task(self, agent: str, key: str, change: TaskChange, submission: Submission | None) -> TaskAnswer:
        question = UpdateAsk(
            agent=agent,
            key=key,
            change=change,
            branch=submission.branch if submission else None,
            sha=submission.sha if submission else None,
        )
        return unpack(TaskAnswer, await self._ask("update_task", question))

    async def get_task(self, task_id: str) -> TaskView | None:
        return unpack(TaskFound, await self._call("get_task", task_id)).task

    async def list_tasks(self) -> tuple[TaskView, ...]:
        return unpack(TaskList, await self._call("list_tasks")).tasks

    async def resolve(self, agent: str, to: str) -> Resolved:
        return unpack(Resolved, await self._ask("resolve", ResolveAsk(agent=agent, to=to)))

    async def deliver(self, envelope: Envelope) -> Receipt:
        return unpack(Receipt, await self._ask("deliver", envelope, DELIVERY_S))

    async def start_child(self, agent: str, key: str, request: ChildRequest) -> ChildStarted:
        question = ChildAsk(agent=agent, key=key, request=request)
        return unpack(ChildStarted, await self._ask("start_child", question, 90.0))

    async def await_child(self, child: str, wait_s: float) -> ChildOutcome | None:
        answer = await self._ask("await_child", ChildWait(child=child, wait_s=wait_s), wait_s + CALL_S)
        return unpack(ChildFound, answer).outcome

    async def reserve(self, agent: str, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        question = ReserveAsk(agent=agent, step=step, model=model, tokens=tokens, settled=settled)
        return unpack(Reservation, await self._ask("reserve", question))

    async def peers(self, agent: str) -> tuple[PeerView, ...]:
        return unpack(PeerList, await self._call("peers", agent)).peers

    async def reserve_side(self, agent: str, key: str, model: str, tokens: int) -> Reservation:
        question = SideAsk(agent=agent, key=key, model=model, tokens=tokens)
        return unpack(Reservation, await self._ask("reserve_side", question))

    async def settle_side(self, agent: str, key: str, model: str, used: Usage) -> None:
        await self._ask("settle_side", SideUsed(agent=agent, key=key, model=model, used=used))

    async def report(self, status: AgentStatus) -> None:
        await self._ask("report", status)

    async def _ask(self, method: str, message: BaseModel, deadline_s: float = CALL_S) -> bytes:
        return await self._call(method, pack(message), deadline_s=deadline_s)

    async def _call(self, method: str, *args: object, deadline_s: float = CALL_S) -> bytes:
        try:
            self._actor = self._actor or find(TEAM, self._run)
            call: Awaitable[bytes] = getattr(self._actor, method).remote(*args)
            return await ask(call, deadline_s)
        except Unreachable:
            self._actor = None
            raise
