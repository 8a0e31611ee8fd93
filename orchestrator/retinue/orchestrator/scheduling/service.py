"""The scheduler without its actor: leases that wait, and the news that a workspace has a second tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.orchestrator.scheduling.leases import LeaseRequest, Leases, LeaseView


@dataclass(slots=True)
class SchedulerService:
    """`now` is wall-clock seconds: what people read. After a restart it is empty, and safety is the kernel's lock."""

    now: Callable[[], float]
    leases: Leases = field(default_factory=Leases)
    waiting: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def move_in(self, workspace: str, holder: str) -> tuple[str, ...]:
        """Register; returns the other tenants, who have to be told that they are no longer alone."""
        return tuple(sorted(self.leases.move_in(workspace, holder) - {holder}))

    async def acquire(self, request: LeaseRequest, wait_s: float) -> bool:
        """True when granted. False: still waiting, in its place; ask again with the same id."""
        self._wake(self.leases.submit(request, self.now()))
        if self.leases.is_granted(request.id):
            return True
        event = self.waiting.setdefault(request.id, asyncio.Event())
        try:
            async with asyncio.timeout(wait_s):
                await event.wait()
        except TimeoutError:
            return False
        return self.leases.is_granted(request.id)

    def release(self, request_id: str) -> None:
        self.waiting.pop(request_id, None)
        self._wake(self.leases.finish(request_id, self.now()))

    def lose(self, holder: str) -> None:
        self._wake(self.leases.lose(holder, self.now()))

    def view(self) -> list[LeaseView]:
        return self.leases.view()

    def _wake(self, granted: list[str]) -> None:
        for request_id in granted:
            event = self.waiting.pop(request_id, None)
            if event is not None:
                event.set()
