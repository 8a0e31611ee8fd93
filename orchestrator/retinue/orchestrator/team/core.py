"""What the parts of a running team share: its state, its ledger, its clock, the bell that wakes its tending loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.ledger.records import TeamRecord
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.team.state import TeamState


class JournalPort(Protocol):
    async def record(self, *records: TeamRecord) -> None:
        """Durable when this returns; in the order of the calls."""
        ...


@dataclass(slots=True)
class TeamCore:
    """One per running team. `environment` makes that of an agent's tools, which may hold secrets: never recorded."""

    plan: LaunchPlan
    state: TeamState
    journal: JournalPort
    environment: Callable[[AgentBoot], dict[str, str]]
    now: Callable[[], float]
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    sending: int = 0
    closing: bool = False
    alarm: asyncio.TimerHandle | None = None

    async def record(self, *records: TeamRecord) -> None:
        """State first, so that nothing sees the old one while the disk is busy; callers answer only afterwards."""
        for record in records:
            self.state.apply(record)
        await self.journal.record(*records)

    def stir(self) -> None:
        self.bell.set()

    def stir_in(self, seconds: float) -> None:
        """Later, and once: the newest such wish replaces the one before."""
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = asyncio.get_running_loop().call_later(max(0.0, seconds), self.stir)

    def own(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task that the team owns: awaited or cancelled when it closes."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def close(self) -> None:
        self.closing = True
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
