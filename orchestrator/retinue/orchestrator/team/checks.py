"""Commands of the spec that the team runs: set-up of worktrees, and checks of what is about to be merged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.merging.verify import CommandOutcome
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.state.paths import RunDir
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import ShellPort, ShellRequest

SETUPS_AT_ONCE = 2
"""Set-up commands install things, and two of them keep a small machine busy."""


@dataclass(slots=True)
class ShellChecks:
    """Implements `CommandRunner` with the tools' own shell: own session, allow-listed environment, killed as a tree."""

    shell: ShellPort
    env: Mapping[str, str]
    run_dir: RunDir
    run_id: str

    async def run(self, command: str, cwd: Path, timeout_s: float) -> CommandOutcome:
        outcome = await self.shell.run(
            ShellRequest(
                command=command,
                cwd=cwd,
                env=self.env,
                timeout_s=timeout_s,
                output_file=self.run_dir.tmp / "check.out",
                tag=f"{self.run_id}/team/check",
            ),
            max_chars=8_000,
        )
        return CommandOutcome(outcome.exit_code, outcome.output, outcome.timed_out)


async def run_setup(
    core: TeamCore, depot: Depot, shell_of: Callable[[AgentBoot], Awaitable[ShellPort]], files: RunFiles
) -> None:
    """Every worktree is prepared once, before its agent starts. EnvironmentProblem: a command failed."""
    if not core.plan.setup:
        return
    slots = asyncio.Semaphore(SETUPS_AT_ONCE)

    async def prepare(agent: str) -> None:
        mark = files.dir.tmp / f"{agent}.set-up"
        if mark.exists():
            return
        boot = core.state.members[agent].boot
        env, shell = core.environment(boot), await shell_of(boot)
        async with slots:
            for check in core.plan.setup:
                outcome = await shell.run(
                    ShellRequest(
                        command=check.command,
                        cwd=Path(boot.workspace.root),
                        env=env,
                        timeout_s=check.timeout_s,
                        output_file=files.dir.tmp / f"{agent}.set-up.out",
                        tag=f"{core.plan.run}/{agent}/setup",
                    )
                )
                if outcome.exit_code != 0 or outcome.timed_out:
                    raise EnvironmentProblem(
                        f"repo.setup failed in the worktree of {boot.name}: {check.command}\n{outcome.output[-2000:]}"
                    )
        mark.touch()

    living = {m.boot.agent for m in core.state.living()}
    await asyncio.gather(*(prepare(agent) for agent in depot.workspaces if agent in living))
