"""An agent's leases on its workspace: alone, the kernel's lock is all; with others, the scheduler says whose turn.

Safety never depends on the scheduler: whoever it lets through still takes the lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.scheduling.flock import WorkspaceLock
from retinue.orchestrator.scheduling.leases import LeaseRequest
from retinue.tools.execution.calls import Lease

TURN_S = 10.0
"""How long one question to the scheduler may wait; then it is asked again, in the same place."""


class SchedulerPort(Protocol):
    async def acquire(self, request: LeaseRequest, wait_s: float) -> bool: ...
    async def release(self, request_id: str) -> None: ...


class TenancyPort(SchedulerPort, Protocol):
    async def move_in(self, workspace: str, holder: str) -> bool:
        """Register as a tenant; true when there are others, who are told."""
        ...


@dataclass(slots=True)
class WorkspaceLeases:
    """Implements `LeasePort` for one agent. `shared` says that the workspace has other tenants."""

    holder: str
    lock: WorkspaceLock
    scheduler: SchedulerPort
    waiters: ThreadPoolExecutor
    shared: bool = False

    @asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        if not self.shared:
            async with self.lock.hold(exclusive=exclusive, waiters=self.waiters) as fd:
                yield Lease(fds=(fd,))
            return
        request = LeaseRequest(
            id=f"{self.holder}/{call_id}",
            holder=self.holder,
            wants={self.lock.key: "exclusive" if exclusive else "shared"},
            what=call_id,
        )
        try:
            await self._turn(request)
            async with self.lock.hold(exclusive=exclusive, waiters=self.waiters) as fd:
                yield Lease(fds=(fd,))
        finally:
            # A scheduler that cannot hear this has forgotten the lease, or will when it learns that we are gone.
            with contextlib.suppress(Unreachable):
                await self.scheduler.release(request.id)

    async def _turn(self, request: LeaseRequest) -> None:
        """Wait for our turn. Without a scheduler there is no order, and the lock alone decides."""
        with contextlib.suppress(Unreachable):
            while not await self.scheduler.acquire(request, TURN_S):
                pass
