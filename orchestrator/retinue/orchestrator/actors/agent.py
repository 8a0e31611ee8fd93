"""Ray shell of an agent: one incarnation. Everything it knows comes from its boot and from the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.orchestrator.actors.cluster import find, kill, spawn
from retinue.orchestrator.actors.gateway import GatewayLink
from retinue.orchestrator.actors.mcp import McpLink
from retinue.orchestrator.actors.options import (
    LEDGER,
    agent_actor_name,
    agent_options,
)
from retinue.orchestrator.actors.scheduler import SchedulerLink
from retinue.orchestrator.actors.team_link import TeamLink
from retinue.orchestrator.actors.wire import ask, cause_of, pack, unpack
from retinue.orchestrator.ledger.history import Frames, agent_records
from retinue.orchestrator.runtime.agent_process import AgentProcess
from retinue.orchestrator.runtime.agent_side import patiently
from retinue.orchestrator.runtime.port import Address, AgentOutcome, Unreachable
from retinue.tools.shell.reap import reap

START_S = 60.0
"""How long a process of an agent may take to come up on a busy machine before it counts as lost."""


class AgentActor:
    def __init__(self, boot: bytes) -> None:
        self._boot = unpack(AgentBoot, boot)
        run = self._boot.run
        self._process = AgentProcess(
            self._boot,
            team=TeamLink(run),
            model=GatewayLink(run),
            scheduler=SchedulerLink(),
            straight=straight_to(run),
            mcp=McpLink(run, self._boot.agent),
        )

    async def begin(self) -> None:
        """Read the history, and start to work. Answers when the agent can take mail."""
        frames = unpack(Frames, await patiently(self._history))
        await self._process.begin(agent_records(frames.frames))

    async def _history(self) -> bytes:
        """Unreachable: the ledger's process is being restarted."""
        ledger = find(LEDGER, self._boot.run)
        return await ask(ledger.history.remote(self._boot.agent), START_S)

    async def deliver(self, data: bytes) -> bytes:
        return pack(await self._process.deliver(unpack(Envelope, data)))

    async def state(self) -> bytes:
        return pack(self._process.state())

    async def drain(self) -> None:
        await self._process.drain()

    async def interrupt(self, reason: str) -> None:
        await self._process.interrupt(reason)

    async def no_longer_alone(self) -> None:
        self._process.no_longer_alone()

    async def ended(self) -> bytes:
        return pack(await self._process.ended())


def straight_to(run: str) -> Callable[[Address, Envelope], Any]:
    async def deliver(address: Address, envelope: Envelope) -> Receipt:
        actor = find(agent_actor_name(address.agent, address.incarnation), run)
        return unpack(Receipt, await ask(actor.deliver.remote(pack(envelope))))

    return deliver


@dataclass(slots=True)
class AgentLink:
    """Implements `AgentHandle` over the actor."""

    run: str
    agent: str
    incarnation: int
    actor: Any

    async def deliver(self, envelope: Envelope) -> Receipt:
        return unpack(Receipt, await ask(self.actor.deliver.remote(pack(envelope))))

    async def state(self) -> AgentStatus:
        return unpack(AgentStatus, await ask(self.actor.state.remote()))

    async def drain(self) -> None:
        await ask(self.actor.drain.remote())

    async def interrupt(self, reason: str) -> None:
        await ask(self.actor.interrupt.remote(reason))

    async def kill(self) -> None:
        """The process first, then whatever its shells left behind, which a kept death signal has mostly ended."""
        kill(self.actor)
        await asyncio.to_thread(reap, f"{self.run}/{self.agent}/")

    async def ended(self) -> AgentOutcome:
        try:
            outcome = unpack(AgentOutcome, await self.actor.ended.remote())
        except RayActorError:
            # Who cannot be reached may still live, and must not while its next incarnation does.
            await self.kill()
            return AgentOutcome(lost=True, how="its process died")
        except RayTaskError as error:
            kill(self.actor)
            return AgentOutcome(lost=True, how=f"it failed: {cause_of(error)}")
        kill(self.actor)
        return outcome


class RayAgents:
    """Implements `AgentRuntime`: one detached actor per incarnation."""

    def __init__(self, run: str) -> None:
        self._run = run

    async def start(self, boot: AgentBoot) -> AgentLink:
        actor = spawn(AgentActor, agent_options(boot.run, boot.agent, boot.incarnation), pack(boot))
        link = AgentLink(boot.run, boot.agent, boot.incarnation, actor)
        try:
            await ask(actor.begin.remote(), START_S)
        except Unreachable:
            # Counts as an incarnation that was lost: its `ended` says so, and the team decides about the next.
            kill(actor)
        return link

    async def find(self, agent: str, incarnation: int) -> AgentLink | None:
        try:
            actor = find(agent_actor_name(agent, incarnation), self._run)
        except Unreachable:
            return None
        return AgentLink(self._run, agent, incarnation, actor)
