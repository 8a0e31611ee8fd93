"""Ray shell of a run's team: detached; begins by itself, also after a restart, from the run's directory."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from typing import Any

from retinue.agents.boot import AgentStatus
from retinue.agents.mail.envelopes import Envelope
from retinue.orchestrator.actors.agent import RayAgents
from retinue.orchestrator.actors.cluster import current, find, kill, names_in, spawn, was_restarted
from retinue.orchestrator.actors.options import TEAM, run_actor_options
from retinue.orchestrator.actors.wire import pack, unpack
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.runtime.wire import (
    ChildAsk,
    ChildFound,
    ChildWait,
    CreateAsk,
    HumanMail,
    Order,
    OrderDone,
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
from retinue.orchestrator.team.host import TeamHost, open_team
from retinue.orchestrator.team.service import TeamService
from retinue.tools.errors import StateError


class TeamActor:
    def __init__(self, run_dir: str) -> None:
        self._files = RunFiles.of(run_dir)
        self._opened: asyncio.Future[TeamHost] | None = None
        self._leaving: asyncio.Future[None] | None = None
        # Nobody may be there to call us after a restart: the agents could all be waiting for us.
        current().begin.remote()

    async def begin(self) -> bool:
        """Done when every agent has a process. Raises what kept the team from opening."""
        await self._service()
        return True

    async def _service(self) -> TeamService:
        if self._opened is None:
            self._opened = asyncio.ensure_future(self._open())
        return (await asyncio.shield(self._opened)).service

    async def _open(self) -> TeamHost:
        try:
            host = await open_team(self._files, RayAgents(self._files.plan.run), restarted=was_restarted())
        except Exception:
            # Who resumes gets a team that tries again, not this answer once more.
            self._leaving = asyncio.ensure_future(self._leave())
            raise
        self._leaving = asyncio.ensure_future(self._end(host))
        return host

    async def _end(self, host: TeamHost) -> None:
        """The run's lock is freed by the death of this process and not before: a lock that is free says that a new
        team can be made, and until then its name is taken."""
        await host.service.finished.wait()
        await host.service.core.close()
        await host.close()
        await self._leave()

    async def _leave(self) -> None:
        """When the run is over nothing of it stays but its directory."""
        await asyncio.sleep(0.5)  # answers that are on their way
        run = self._files.plan.run
        for name in names_in(run):
            if name != TEAM:
                with contextlib.suppress(Unreachable):
                    kill(find(name, run))
        kill(current())

    # --- agents -------------------------------------------------------------------------------------------------------

    async def create_task(self, data: bytes) -> bytes:
        wish = unpack(CreateAsk, data)
        return pack(await (await self._service()).create_task(wish.agent, wish.key, wish.draft))

    async def update_task(self, data: bytes) -> bytes:
        wish = unpack(UpdateAsk, data)
        work = Submission(wish.branch, wish.sha) if wish.branch and wish.sha else None
        return pack(await (await self._service()).update_task(wish.agent, wish.key, wish.change, work))

    async def get_task(self, task_id: str) -> bytes:
        return pack(TaskFound(task=await (await self._service()).get_task(task_id)))

    async def list_tasks(self) -> bytes:
        return pack(TaskList(tasks=await (await self._service()).list_tasks()))

    async def peers(self, agent: str) -> bytes:
        return pack(PeerList(peers=await (await self._service()).peers(agent)))

    async def resolve(self, data: bytes) -> bytes:
        wish = unpack(ResolveAsk, data)
        return pack(await (await self._service()).resolve(wish.agent, wish.to))

    async def deliver(self, data: bytes) -> bytes:
        return pack(await (await self._service()).deliver(unpack(Envelope, data)))

    async def start_child(self, data: bytes) -> bytes:
        wish = unpack(ChildAsk, data)
        return pack(await (await self._service()).start_child(wish.agent, wish.key, wish.request))

    async def await_child(self, data: bytes) -> bytes:
        wish = unpack(ChildWait, data)
        return pack(ChildFound(outcome=await (await self._service()).await_child(wish.child, wish.wait_s)))

    async def reserve(self, data: bytes) -> bytes:
        wish = unpack(ReserveAsk, data)
        service = await self._service()
        return pack(await service.reserve(wish.agent, wish.step, wish.model, wish.tokens, wish.settled))

    async def reserve_side(self, data: bytes) -> bytes:
        wish = unpack(SideAsk, data)
        return pack(await (await self._service()).reserve_side(wish.agent, wish.key, wish.model, wish.tokens))

    async def settle_side(self, data: bytes) -> bytes:
        told = unpack(SideUsed, data)
        await (await self._service()).settle_side(told.agent, told.key, told.model, told.used)
        return b""

    async def report(self, data: bytes) -> bytes:
        await (await self._service()).report(unpack(AgentStatus, data))
        return b""

    # --- the human ----------------------------------------------------------------------------------------------------

    async def send(self, data: bytes) -> bytes:
        mail = unpack(HumanMail, data)
        self._must_be_human(mail.key)
        return pack(await (await self._service()).send_from_human(mail.to, mail.id, mail.text))

    async def order(self, data: bytes) -> bytes:
        order = unpack(Order, data)
        self._must_be_human(order.key)
        service = await self._service()
        match order.what:
            case "drain":
                told = await service.drain()
                return pack(OrderDone(ok=True, lines=tuple(f"{a}: {how}" for a, how in sorted(told.items()))))
            case "stop":
                await service.stop_hard()
                return pack(OrderDone(ok=True))
            case "stop_agent":
                return pack(OrderDone(ok=True, lines=(await service.stop_agent(order.agent),)))
            case _:
                return pack(OrderDone(ok=False, lines=(f"unknown order {order.what!r}",)))

    def _must_be_human(self, key: str) -> None:
        """Who holds the key file of the run is the human; an agent's tools cannot read it."""
        if not hmac.compare_digest(key.encode(), self._files.dir.read_control_key().encode()):
            raise StateError("the control key is wrong; it is in control.key in the run's directory")


def spawn_team(run: str, run_dir: str) -> Any:
    return spawn(TeamActor, run_actor_options(TEAM, run), run_dir)
