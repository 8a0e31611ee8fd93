"""Worktrees beside an agent's own, made and removed by its shell in each sandbox: they work, and reach nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from retinue.agents.boot import AgentBoot, WorkspaceBoot
from retinue.orchestrator.run_files import GIT_CONFIG, PrivateEnv, RunFiles
from retinue.orchestrator.runtime.agent_side import AgentShell
from retinue.orchestrator.runtime.beside import AgentWorktrees
from retinue.orchestrator.sandboxing import agent_policy
from retinue.orchestrator.state.paths import RunDir
from retinue.orchestrator.team.plan import SandboxPlan
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.system.ports import WorktreeLoss
from support.agents_scene import FreeLeases, a_boot

from .conftest import RUN, World


@dataclass
class Confined:
    depot: Depot
    boot: AgentBoot
    shell: KeeperShell
    env: dict[str, str]
    trees: AgentWorktrees

    async def run(self, command: str, cwd: Path) -> ShellOutcome:
        output = self.depot.paths.tmp / "out"
        return await self.shell.run(
            ShellRequest(command=command, cwd=cwd, env=self.env, timeout_s=60, output_file=output)
        )


@pytest.fixture(params=["bubblewrap", "landlock"])
async def ada(world: World, request: pytest.FixtureRequest) -> Confined:
    depot = await world.depot()
    own, _ = await world.agent(depot, "ada~1"), await world.agent(depot, "bob~1")
    files = RunFiles(RunDir(world.run_dir))
    files.dir.env.write_text(PrivateEnv(base=world.env).model_dump_json())
    files.git_config.write_text(GIT_CONFIG)
    boot = a_boot(
        run=RUN,
        repo=str(world.user),
        run_dir=str(world.run_dir),
        workspace=WorkspaceBoot(
            root=str(own.path), isolation="worktree", git_dir=str(own.git_dir), branch=own.branch, base_sha=own.base_sha
        ),
    )
    plan = SandboxPlan(state="on", probe=probe(request.param), private=(str(world.run_dir.parent),))
    policy = agent_policy(plan, boot)
    for folder in (policy.scratch, *(depot.paths.beside(agent) for agent in ("ada~1", "bob~1"))):
        folder.mkdir(parents=True)
    shell = KeeperShell(confinement=confinement(policy, plan.probe))
    env = files.environment_of(boot, "ada")
    return Confined(depot, boot, shell, env, AgentWorktrees(boot, AgentShell(boot, shell, FreeLeases(), env), depot))


async def test_the_whole_life_of_a_worktree_goes_on_in_the_sandbox(ada: Confined) -> None:
    place = await ada.trees.make("one", "head")
    done = await ada.run("echo a > a.txt && git add -A && git commit -q -m a && echo b > b.txt", Path(place.path))
    assert done.exit_code == 0, done.output
    assert await ada.trees.loss(place) == WorktreeLoss(files=1, commits=1)
    refs = await ada.trees.rescue(place)
    await ada.trees.remove(place)
    assert not Path(place.path).exists()
    assert (await ada.depot.run(["show", f"{refs[0]}:b.txt"])).stdout == "b\n"
    assert await ada.depot.commit_of(refs[1]) is not None


async def test_the_worktrees_of_others_are_out_of_reach(ada: Confined) -> None:
    theirs = ada.depot.paths.beside("bob~1")
    (theirs / "secret.txt").write_text("bob's\n")
    place = await ada.trees.make("one", "head")
    read = await ada.run(f"cat '{theirs}/secret.txt'", Path(place.path))
    assert read.exit_code != 0
    assert "bob's" not in read.output
    await ada.run(f"echo x > '{theirs}/new.txt'", Path(place.path))
    assert [path.name for path in theirs.iterdir()] == ["secret.txt"]
