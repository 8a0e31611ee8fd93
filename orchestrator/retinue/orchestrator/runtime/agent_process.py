"""One incarnation of an agent in the process that it has for itself: its ports, its loop, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.model.port import ModelPort
from retinue.agents.prompt import Facts
from retinue.agents.records import AgentRecord, TurnClosed
from retinue.orchestrator.ledger.parse import body_of
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.agent_side import (
    AgentShell,
    DeliverTo,
    DepotCheckpoint,
    OwnShell,
    TeamBoard,
    TeamBudget,
    TeamChildren,
    TeamMail,
    TeamPeers,
    TeamStatus,
)
from retinue.orchestrator.runtime.beside import AgentWorktrees
from retinue.orchestrator.runtime.confined import Shells
from retinue.orchestrator.runtime.port import AgentOutcome, TeamApi, Unreachable
from retinue.orchestrator.runtime.reach import languages_of, search_of
from retinue.orchestrator.sandboxing import use_of
from retinue.orchestrator.scheduling.flock import WorkspaceLock, workspace_key
from retinue.orchestrator.scheduling.wire import holder_of
from retinue.orchestrator.scheduling.workspace import TenancyPort, WorkspaceLeases
from retinue.orchestrator.state.redact import Redactor
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Git
from retinue.tools.errors import EnvironmentProblem, RetinueError
from retinue.tools.extension.skills.book import SkillBook
from retinue.tools.lsp.manager import LanguageServers
from retinue.tools.mcp.ports import McpPort
from retinue.tools.shell.reap import reap

LOCK_WAITERS = 16
"""Threads that may wait for the workspace's lock at once: more than the calls that one agent runs side by side."""


@dataclass(slots=True)
class FileLedger:
    """Implements `LedgerPort`: this process appends to the run's file itself."""

    writer: LedgerWriter

    async def append(self, *records: AgentRecord) -> None:
        await self.writer.append_many([body_of(record) for record in records])

    async def sync(self) -> None:
        await self.writer.sync()


class AgentProcess:
    """`begin` once; `ended` answers when the loop is over, which nothing but its own reasons or `drain` makes it."""

    def __init__(
        self,
        boot: AgentBoot,
        *,
        team: TeamApi,
        model: ModelPort,
        scheduler: TenancyPort,
        straight: DeliverTo,
        mcp: McpPort | None = None,
    ) -> None:
        self._boot = boot
        self._team = team
        self._model = model
        self._scheduler = scheduler
        self._straight = straight
        self._mcp = mcp
        self._status = TeamStatus(team)
        self._waiters = ThreadPoolExecutor(LOCK_WAITERS, thread_name_prefix="lock")
        self._loop: AgentLoop | None = None
        self._leases: WorkspaceLeases | None = None
        self._shells: Shells | None = None
        self._languages: LanguageServers | None = None
        self._running: asyncio.Task[TurnClosed | None] | None = None

    async def begin(self, history: Sequence[AgentRecord]) -> None:
        """Raises EnvironmentProblem when the agent does not stand where it should."""
        boot = self._boot
        files = RunFiles.of(boot.run_dir)
        # What an earlier incarnation's shells left behind would work in the same place.
        await asyncio.to_thread(reap, f"{boot.run}/{boot.agent}/")
        root = Path(boot.workspace.root)
        if not await asyncio.to_thread(root.is_dir):
            raise EnvironmentProblem(f"the workspace of {boot.name} is gone: {root}")
        redactor = Redactor(files.private.secrets)
        writer = LedgerWriter.open(files.dir.ledger, boot.agent, boot.incarnation, time.time, redact=redactor.body)
        depot = None
        if boot.workspace.isolation == "worktree":
            depot = await Depot.open(Git(search_path=boot.env.get("PATH", os.defpath)), files.dir.root)
        self._leases = leases = await self._move_in(root, Path(files.plan.locks_dir))
        self._shells = shells = Shells(files, boot.agent)
        keeper = await shells.of_agent(boot)
        shell = OwnShell(keeper, f"{boot.run}/{boot.agent}")
        self._languages = languages_of(files, boot, keeper.confinement)
        as_agent = AgentShell(boot, shell, leases, boot.env)
        owner = depot if boot.role != "child" else None
        worktrees = AgentWorktrees(boot, as_agent, owner) if owner is not None else None
        self._loop = loop = assemble_agent(
            boot,
            history,
            AgentPorts(
                model=self._model,
                ledger=FileLedger(writer),
                budget=TeamBudget(boot, self._team),
                status=self._status,
                checkpoint=DepotCheckpoint(boot, owner),
            ),
            ToolPorts(
                leases=leases,
                shell=shell,
                board=TeamBoard(boot, self._team, as_agent, owner, merges=files.plan.strategy != "none"),
                mail=TeamMail(boot, self._team, self._straight),
                children=TeamChildren(boot, self._team),
                worktrees=worktrees,
                peers=TeamPeers(boot, self._team),
                languages=self._languages,
                search=search_of(files, self._mcp if files.plan.mcp else None),
                mcp=self._mcp if files.plan.mcp else None,
            ),
            Facts(date=files.plan.day, platform=platform.platform(terse=True)),
            env=boot.env,
            redact=redactor.text,
            sandbox=use_of(files.plan.sandbox, boot),
            settings=files.plan.settings,
            skills=SkillBook(files.plan.skills),
        )
        self._running = asyncio.get_running_loop().create_task(loop.run())

    async def _move_in(self, root: Path, locks: Path) -> WorkspaceLeases:
        key = workspace_key(root)
        holder = holder_of(self._boot.run, self._boot.agent, self._boot.incarnation)
        leases = WorkspaceLeases(holder, WorkspaceLock(locks, key), self._scheduler, self._waiters)
        # Without a scheduler nobody can say who else is here; the lock keeps us apart all the same.
        with contextlib.suppress(Unreachable):
            leases.shared = await self._scheduler.move_in(key, holder)
        return leases

    async def deliver(self, envelope: Envelope) -> Receipt:
        return await self._its_loop().deliver(envelope)

    def state(self) -> AgentStatus:
        return self._its_loop().status()

    async def drain(self) -> None:
        await self._its_loop().drain()

    async def interrupt(self, reason: str) -> None:
        await self._its_loop().interrupt(reason)

    def no_longer_alone(self) -> None:
        if self._leases is not None:
            self._leases.shared = True

    async def ended(self) -> AgentOutcome:
        """How the loop ended; a fault of ours in it counts as a lost process."""
        running = self._running
        assert running is not None
        try:
            last = await asyncio.shield(running)
        except RetinueError as error:
            return AgentOutcome(lost=True, how=str(error))
        finally:
            if self._languages is not None and running.done():
                await self._languages.close()
            if self._shells is not None and running.done():
                await self._shells.close()
        await self._status.settle()
        if last is None:
            return AgentOutcome(lost=False, how="drained")
        return AgentOutcome(lost=False, how=last.reason, reason=last.reason, text=last.text or last.detail)

    def _its_loop(self) -> AgentLoop:
        if self._loop is None:
            raise Unreachable(f"{self._boot.agent} has not begun yet")
        return self._loop
