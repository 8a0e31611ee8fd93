"""The shells of a run's processes: confined as its launch decided, or, where that was decided, not at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.sandboxing import agent_policy, policy_of_checks
from retinue.orchestrator.scheduling.flock import WorkspaceLock, workspace_key
from retinue.orchestrator.workspaces.facts import RunPaths
from retinue.tools.ports import Confinement
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.ground import unmake
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.proxy import ProxyServer


@dataclass(slots=True)
class Shells:
    """Makes the shells of one process of a run, and runs the proxies that lists of hosts need, until it is closed.

    process   names it among the processes of the run: an agent's id, or `team`

    EnvironmentProblem: the mechanism of the launch cannot be used here and now, and nothing runs without it.
    """

    files: RunFiles
    process: str
    _proxies: dict[tuple[str, ...], Path] = field(default_factory=dict[tuple[str, ...], Path])
    _running: list[ProxyServer] = field(default_factory=list[ProxyServer])
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of_agent(self, boot: AgentBoot) -> KeeperShell:
        really = await asyncio.to_thread(_really, boot)
        beside = RunPaths(Path(really.run_dir)).beside(boot.agent)
        await asyncio.to_thread(beside.mkdir, 0o700, parents=True, exist_ok=True)
        return await self._shell(agent_policy(self.files.plan.sandbox, really))

    async def of_checks(self) -> KeeperShell:
        plan = self.files.plan
        run, repo = await asyncio.to_thread(lambda: (self.files.dir.root.resolve(), Path(plan.repo).resolve()))
        return await self._shell(policy_of_checks(plan.sandbox, run, repo))

    async def close(self) -> None:
        """No command of these shells runs any more."""
        while self._running:
            await self._running.pop().__aexit__(None, None, None)
        self._proxies.clear()

    async def _shell(self, policy: SandboxPolicy) -> KeeperShell:
        return KeeperShell(confinement=await self.confinement_of(policy))

    async def confinement_of(self, policy: SandboxPolicy) -> Confinement | None:
        """None: the launch decided that nothing is confined."""
        sandbox = self.files.plan.sandbox
        if sandbox.state != "on":
            return None
        await asyncio.to_thread(policy.scratch.mkdir, 0o700, parents=True, exist_ok=True)
        proxy = await self._proxy(policy.network) if isinstance(policy.network, tuple) else None
        return confinement(policy, sandbox.probe, proxy)

    async def _proxy(self, hosts: tuple[str, ...]) -> Path:
        async with self._starting:
            if hosts not in self._proxies:
                # Beside the scratch folders: what is in one of them, its agent can exchange.
                path = self.files.dir.tmp / f"{self.process}.proxy-{len(self._proxies)}"
                self._running.append(await ProxyServer(hosts, path).__aenter__())
                self._proxies[hosts] = path
            return self._proxies[hosts]


def tidy(files: RunFiles) -> None:
    """Take out of the user's checkout the empty folders that held the place of what no command may make there.

    No command of this run is left. Where one of another run may be at work they stay: they hold for it as well.
    """
    plan = files.plan
    for member in plan.members:
        root = Path(member.workspace.root)
        if plan.sandbox.state != "on" or member.workspace.isolation != "none" or not root.is_dir():
            continue
        with WorkspaceLock(Path(plan.locks_dir), workspace_key(root)).if_free() as free:
            if free:
                unmake(replace(agent_policy(plan.sandbox, _really(member)), hidden=()))


def _really(boot: AgentBoot) -> AgentBoot:
    """With paths as the kernel knows them, whatever links lead to the run. In the run's directory, where agents write,
    none is followed.
    """
    run = Path(boot.run_dir)
    real = run.resolve()

    def moved(written: str) -> str:
        path = Path(written)
        return str(real / path.relative_to(run) if path.is_relative_to(run) else path.resolve())

    where = boot.workspace
    there = {"root": moved(where.root), "git_dir": moved(where.git_dir) if where.git_dir is not None else None}
    moves = {"run_dir": str(real), "repo": moved(boot.repo), "workspace": where.model_copy(update=there)}
    return boot.model_copy(update=moves)
