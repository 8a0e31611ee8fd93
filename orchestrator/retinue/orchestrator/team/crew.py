"""The processes of a run's agents: started, watched, restarted one for one, stopped in two phases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from retinue.agents.boot import AgentStatus
from retinue.orchestrator.ledger.records import AgentEnded, AgentLost, IncarnationStarted
from retinue.orchestrator.runtime.port import AgentHandle, AgentOutcome, AgentRuntime, Unreachable
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.state import MemberState
from retinue.orchestrator.team.supervision import RestartPolicy, may_restart

log = logging.getLogger(__name__)

DRAIN_S = 30.0
"""How long an agent may take to finish its step when the run drains; then it is killed, resumably."""


@dataclass(slots=True)
class Station:
    """Where one agent runs now. Inside `gate` no next incarnation begins; `past` are the times of its restarts."""

    agent: str
    handle: AgentHandle | None = None
    status: AgentStatus | None = None
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)
    past: tuple[float, ...] = ()


OnEnded = Callable[[MemberState, AgentOutcome], Awaitable[None]]


class Crew:
    """Every living agent of the run has a station; the ledger says which incarnation it is."""

    def __init__(self, core: TeamCore, runtime: AgentRuntime, policy: RestartPolicy, on_ended: OnEnded) -> None:
        self._core = core
        self._runtime = runtime
        self._policy = policy
        self._on_ended = on_ended
        self.stations: dict[str, Station] = {}

    def station(self, agent: str) -> Station:
        return self.stations.setdefault(agent, Station(agent))

    async def adopt(self) -> None:
        """Take over the processes that an earlier process of the team has made. Before any mail is sent: for who is
        not known to live, mail is stored where only a next incarnation would look."""
        await asyncio.gather(*(self._adopt(member) for member in self._core.state.living() if member.incarnation))

    async def _adopt(self, member: MemberState) -> None:
        station = self.station(member.boot.agent)
        handle = await self._runtime.find(member.boot.agent, member.incarnation)
        if handle is None:
            return
        try:
            status = await handle.state()
        except Unreachable:
            # It may only be slow, or not have begun; but two incarnations of one agent must never work side by side.
            await handle.kill()
            return
        self._attach(member, station, handle, status)

    async def muster(self) -> None:
        """Every living member has a process when this returns."""
        await asyncio.gather(*(self.man(member) for member in self._core.state.living()))

    async def man(self, member: MemberState) -> None:
        """Start its next incarnation, unless it has a process."""
        station = self.station(member.boot.agent)
        async with station.gate:
            if station.handle is not None:
                return
            handle = await self._start(member)
            status = AgentStatus(agent=member.boot.agent, incarnation=member.incarnation, state="starting")
            self._attach(member, station, handle, status)

    async def _start(self, member: MemberState) -> AgentHandle:
        number = member.incarnation + 1
        await self._core.record(IncarnationStarted(agent=member.boot.agent, incarnation=number, at=self._core.now()))
        env = self._core.environment(member.boot)
        boot = member.boot.model_copy(update={"incarnation": number, "env": env})
        return await self._runtime.start(boot)

    def _attach(self, member: MemberState, station: Station, handle: AgentHandle, status: AgentStatus) -> None:
        station.handle = handle
        station.status = status
        self._core.own(self._watch(member, station, handle))

    async def _watch(self, member: MemberState, station: Station, handle: AgentHandle) -> None:
        outcome = await handle.ended()
        async with station.gate:
            station.handle = None
        if self._core.closing or self._core.state.phase != "running":
            return
        if outcome.lost:
            await self._lost(member, station, outcome)
        else:
            await self._on_ended(member, outcome)
        self._core.stir()

    async def _lost(self, member: MemberState, station: Station, outcome: AgentOutcome) -> None:
        verdict = may_restart(self._policy, station.past, self._core.now())
        station.past = verdict.past
        agent = member.boot.agent
        log.warning("agent %s lost (%s), again: %s", agent, outcome.how, verdict.again)
        await self._core.record(
            AgentLost(agent=agent, incarnation=member.incarnation, how=outcome.how, again=verdict.again)
        )
        if not verdict.again:
            why = f"lost {len(verdict.past)} times within {self._policy.window_s:.0f} s: {outcome.how}"
            await self._on_ended(member, AgentOutcome(lost=True, how=why))
            return
        await asyncio.sleep(verdict.delay_s)
        if self._core.state.phase == "running":
            await self.man(member)

    async def stop(self, member: MemberState, why: str, *, deadline_s: float = DRAIN_S) -> str:
        """Two phases with a deadline: ask, then kill. Always ends, and says what it took."""
        station = self.station(member.boot.agent)
        await self._core.record(AgentEnded(agent=member.boot.agent, why=why))
        return await self._drain(station, deadline_s)

    def background_of(self, agent: str) -> dict[str, str]:
        """Ids and titles of what runs there in the background, as far as is known."""
        status = self.station(agent).status
        return {} if status is None else status.background

    async def end_background(self) -> None:
        """Agents with commands in the background end, and their commands with them; all others stay."""
        busy = [station for agent, station in self.stations.items() if self.background_of(agent)]
        await asyncio.gather(*(self._drain(station, DRAIN_S) for station in busy))

    async def drain(self, *, deadline_s: float = DRAIN_S) -> dict[str, str]:
        """All agents finish their step and end; who does not is killed. Resumable either way."""
        stations = [s for s in self.stations.values() if s.handle is not None]
        told = await asyncio.gather(*(self._drain(s, deadline_s) for s in stations))
        return {s.agent: how for s, how in zip(stations, told, strict=True)}

    async def _drain(self, station: Station, deadline_s: float) -> str:
        handle = station.handle
        if handle is None:
            return "had no process"
        try:
            async with asyncio.timeout(deadline_s):
                await handle.drain()
                await handle.ended()
        except (TimeoutError, Unreachable):
            await handle.kill()
            return "killed"
        return "drained"

    async def kill_all(self) -> None:
        handles = [s.handle for s in self.stations.values() if s.handle is not None]
        await asyncio.gather(*(h.kill() for h in handles), return_exceptions=True)
