"""What a run or one of its agents changed, as the text of a diff; read in the Depot, never in an agent's worktree."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.facts import Workspace
from retinue.orchestrator.workspaces.git import Git
from retinue.orchestrator.workspaces.snapshot import Snapshots
from retinue.tools.errors import StateError


async def changes(run_dir: Path, agent: str | None, *, stat: bool = False) -> str:
    """Empty when nothing changed. Raises StateError for a run without a Depot or an agent that has no workspace."""
    depot = await Depot.open(Git(), run_dir)
    if agent is None:
        return await _diff(depot, depot.facts.base_sha, names.TIP, stat=stat)
    agent_id = _agent_id(depot, agent)
    workspace = depot.workspaces.get(agent_id)
    if workspace is not None and await asyncio.to_thread(workspace.path.is_dir):
        return await _diff(depot, workspace.base_sha, await _files_now(depot, workspace), stat=stat)
    kept = await depot.commit_of(names.checkpoint_ref(agent_id)) or await depot.commit_of(names.submitted_ref(agent_id))
    if kept is None:
        raise StateError(f"{agent} left no work behind in run {depot.facts.run}")
    return await _diff(depot, depot.facts.base_sha, kept, stat=stat)


def _agent_id(depot: Depot, agent: str) -> str:
    """By id or by name; of several with one name the newest."""
    if "~" in agent:
        return names.check_agent(agent)
    with_work = [known for known in depot.workspaces if known.partition("~")[0] == agent]
    if with_work:
        return max(with_work, key=lambda known: int(known.partition("~")[2] or 0))
    if not depot.workspaces:
        return names.check_agent(f"{agent}~1")
    listed = ", ".join(sorted({known.partition("~")[0] for known in depot.workspaces}))
    raise StateError(f"no agent {agent!r} with a worktree in run {depot.facts.run}; there are: {listed}")


async def _files_now(depot: Depot, workspace: Workspace) -> str:
    """A tree of all files that are not ignored, made as a checkpoint is, with an index that nobody else uses."""
    depot.guard()
    with tempfile.TemporaryDirectory(dir=depot.paths.own, prefix=".diff-") as folder:
        snapshots = Snapshots(depot.git, depot.paths.depot, workspace.path, Path(folder) / "index")
        await snapshots.seed(workspace.base_sha, depot.paths.index(workspace.agent))
        return await snapshots.tree()


async def _diff(depot: Depot, old: str, new: str, *, stat: bool) -> str:
    how = ["--stat=100"] if stat else ["--patch", "--binary", "--full-index"]
    made = await depot.run(
        ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", *how, old, new, "--"],
        purpose="comparing the work with what it started from",
    )
    return made.stdout
