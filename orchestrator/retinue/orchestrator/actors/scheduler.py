"""Ray shell of the scheduler: one per cluster, detached; it forgets everything when it dies, and nothing breaks."""

from __future__ import annotations

import time
from typing import Any

from retinue.orchestrator.actors.cluster import find, spawn
from retinue.orchestrator.actors.options import CLUSTER_NAMESPACE, SCHEDULER, agent_actor_name, scheduler_options
from retinue.orchestrator.actors.wire import CALL_S, ask, pack, unpack
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.scheduling.leases import LeaseRequest
from retinue.orchestrator.scheduling.service import SchedulerService
from retinue.orchestrator.scheduling.wire import LeaseAsk, LeaseLines, holder_parts


class SchedulerActor:
    def __init__(self) -> None:
        self._service = SchedulerService(now=time.time)

    async def move_in(self, workspace: str, holder: str) -> bool:
        """True when others work there too; they are told."""
        others = self._service.move_in(workspace, holder)
        for other in others:
            await self._tell(other)
        return bool(others)

    async def acquire(self, data: bytes) -> bool:
        wish = unpack(LeaseAsk, data)
        request = LeaseRequest(id=wish.id, holder=wish.holder, wants=wish.wants, what=wish.what)
        return await self._service.acquire(request, wish.wait_s)

    async def release(self, request_id: str) -> None:
        self._service.release(request_id)

    async def lose(self, holder: str) -> None:
        self._service.lose(holder)

    async def view(self) -> bytes:
        return pack(LeaseLines.of(self._service.view()))

    async def _tell(self, holder: str) -> None:
        run, agent, incarnation = holder_parts(holder)
        try:
            actor = find(agent_actor_name(agent, incarnation), run)
            await ask(actor.no_longer_alone.remote(), 5.0)
        except Unreachable:
            self._service.lose(holder)


def spawn_scheduler() -> Any:
    """The cluster's scheduler; made when there is none yet."""
    return spawn(SchedulerActor, scheduler_options())


class SchedulerLink:
    """Implements `SchedulerPort` over the actor. Raises Unreachable while it is being restarted."""

    def __init__(self) -> None:
        self._actor: Any = None

    async def move_in(self, workspace: str, holder: str) -> bool:
        return await self._call("move_in", workspace, holder)

    async def acquire(self, request: LeaseRequest, wait_s: float) -> bool:
        wish = LeaseAsk(
            id=request.id, holder=request.holder, wants=dict(request.wants), what=request.what, wait_s=wait_s
        )
        return await self._call("acquire", pack(wish), deadline_s=wait_s + CALL_S)

    async def release(self, request_id: str) -> None:
        await self._call("release", request_id)

    async def _call(self, method: str, *args: object, deadline_s: float = CALL_S) -> Any:
        try:
            self._actor = self._actor or find(SCHEDULER, CLUSTER_NAMESPACE)
            return await ask(getattr(self._actor, method).remote(*args), deadline_s)
        except Unreachable:
            self._actor = None
            raise
