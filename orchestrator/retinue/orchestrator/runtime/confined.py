"""The shells of a run's processes: confined as its launch decided, or, where that was decided, not at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.sandboxing import agent_policy, policy_of_checks
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import SandboxPolicy


@dataclass(frozen=True, slots=True)
class Shells:
    """Makes shells for one process of a run. EnvironmentProblem: the mechanism of the launch cannot be used."""

    files: RunFiles

    async def of_agent(self, boot: AgentBoot) -> KeeperShell:
        return await self._shell(agent_policy(self.files.plan.sandbox, boot))

    async def of_checks(self) -> KeeperShell:
        plan = self.files.plan
        return await self._shell(policy_of_checks(plan.sandbox, self.files.dir.root, Path(plan.repo)))

    async def _shell(self, policy: SandboxPolicy) -> KeeperShell:
        sandbox = self.files.plan.sandbox
        if sandbox.state != "on":
            return KeeperShell()
        await asyncio.to_thread(policy.scratch.mkdir, 0o700, parents=True, exist_ok=True)
        return KeeperShell(confinement=confinement(policy, sandbox.probe))
