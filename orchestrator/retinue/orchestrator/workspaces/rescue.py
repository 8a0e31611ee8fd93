"""Taking a workspace away without losing work: all of it becomes reachable from the Depot's rescue refs first.

Saved are all branches, stashes and commits in reflogs, what is staged, and every file that is not ignored. A workspace
with a repository of its own inside, and one where any git command fails, is kept.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.facts import Workspace
from retinue.orchestrator.workspaces.git import OURSELVES, GitError
from retinue.orchestrator.workspaces.worktrees import admin_folder, discard, nested_repositories
from retinue.tools.errors import StateError

_SHA = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


@dataclass(frozen=True, slots=True)
class Removal:
    """`kept` says why the workspace is still there; else `refs` are the rescue refs that hold what was in it."""

    agent: str
    kept: str | None = None
    refs: tuple[str, ...] = ()


async def remove_agent(depot: Depot, agent: str) -> Removal:
    """Rescue what an agent's workspace holds, then remove worktree and repository. The agent must have stopped."""
    workspace = depot.workspace(agent)
    try:
        refs = await rescue(depot, agent)
        # Renamed first, so that a removal that is cut short leaves no half of a workspace.
        await asyncio.to_thread(_away, depot, workspace)
    except (GitError, StateError, OSError) as problem:
        return Removal(agent, kept=str(problem))
    depot.forget(agent)
    await asyncio.to_thread(_sweep, depot, agent)
    return Removal(agent, refs=refs)


async def rescue(depot: Depot, agent: str) -> tuple[str, ...]:
    """Make everything in a workspace reachable from the Depot. Raises where that cannot be promised."""
    workspace = depot.workspace(agent)
    nested = await asyncio.to_thread(lambda: next(nested_repositories(workspace.path), None))
    if nested is not None:
        raise StateError(f"{nested} is a git repository of its own, which would be lost; move it away, then try again")
    commits = {name: sha for name, sha in await _branches(depot, agent)}
    admin = await asyncio.to_thread(admin_folder, workspace.path, workspace.git_dir)
    commits["index"] = await _staged(depot, agent, admin)
    loose = await asyncio.to_thread(_mentioned, workspace.git_dir)
    present = await _present(depot, agent, loose - set(commits.values()))
    commits.update({f"log/{number}": sha for number, sha in enumerate(present)})
    await _fetch(depot, agent, commits)
    await depot.checkpoint(agent)
    files = await depot.commit_of(names.checkpoint_ref(agent))
    if files is not None:
        ref = f"{names.rescue_prefix(agent)}/files"
        await depot.run(["update-ref", "--no-deref", ref, files], purpose=f"rescuing the files of {agent}")
    return await _thin_out(depot, agent)


async def _branches(depot: Depot, agent: str) -> list[tuple[str, str]]:
    listing = await depot.run_in_agent(
        agent,
        ["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags", "refs/stash"],
        purpose=f"listing the branches of {agent}",
    )
    pairs = (line.split(" ", 1) for line in listing.stdout.splitlines())
    return [(ref.removeprefix("refs/"), sha) for ref, sha in pairs]


async def _staged(depot: Depot, agent: str, admin: Path) -> str:
    """A commit of what is staged. Of an unfinished merge no tree can be written: that is a git failure."""
    index = {"GIT_INDEX_FILE": str(admin / "index")}
    purpose = f"rescuing what {agent} has staged"
    tree = (await depot.run_in_agent(agent, ["write-tree"], purpose=purpose, env=index)).line
    parent = depot.workspace(agent).base_sha
    args = ["commit-tree", tree, "-p", parent, "-m", f"What {agent} had staged"]
    return (await depot.run_in_agent(agent, args, purpose=purpose, env=OURSELVES.environment())).line


def _mentioned(git_dir: Path) -> set[str]:
    """Every commit that a reflog, a HEAD or an unfinished operation of the repository and its worktrees names."""
    return {sha.decode() for file in _notes(git_dir) for sha in _SHA.findall(file.read_bytes())}


def _notes(git_dir: Path) -> Iterator[Path]:
    roots = [git_dir, *sorted((git_dir / "worktrees").glob("*"))]
    for root in roots:
        yield from (file for file in sorted(root.glob("*HEAD*")) if file.is_file() and not file.is_symlink())
        for folder in ("logs", "rebase-merge", "rebase-apply", "sequencer"):
            yield from (file for file in sorted((root / folder).rglob("*")) if file.is_file() and not file.is_symlink())


async def _present(depot: Depot, agent: str, shas: Iterable[str]) -> list[str]:
    """Those that are commits in the agent's repository: its gc may have removed some, other hashes are no commits."""
    asked = sorted(shas)
    if not asked:
        return []
    answers = await depot.run_in_agent(
        agent,
        ["cat-file", "--batch-check=%(objectname) %(objecttype)"],
        purpose=f"reading the reflogs of {agent}",
        stdin="".join(f"{sha}\n" for sha in asked),
    )
    return [line.split(" ")[0] for line in answers.stdout.splitlines() if line.endswith(" commit")]


async def _fetch(depot: Depot, agent: str, commits: dict[str, str]) -> None:
    prefix = names.rescue_prefix(agent)
    wanted = [f"+{sha}:{prefix}/{name}" for name, sha in commits.items()]
    await depot.fetch_from_agent(agent, wanted, purpose=f"rescuing the commits of {agent}")
    listing = await depot.run(["for-each-ref", "--format=%(refname) %(objectname)", prefix])
    arrived = dict(line.split(" ", 1) for line in listing.stdout.splitlines())
    for name, sha in commits.items():
        if arrived.get(f"{prefix}/{name}") != sha:
            raise GitError(f"rescuing the commits of {agent}: {name} ({sha}) did not arrive")


async def _thin_out(depot: Depot, agent: str) -> tuple[str, ...]:
    """Drop the refs of reflog entries that another ref, the tip or the base reaches anyway."""
    prefix = names.rescue_prefix(agent)
    listing = await depot.run(["for-each-ref", "--format=%(refname) %(objectname)", prefix])
    refs = dict(line.split(" ", 1) for line in listing.stdout.splitlines())
    logged = {ref: sha for ref, sha in refs.items() if ref.startswith(f"{prefix}/log/")}
    kept = [ref for ref in refs if ref not in logged]
    if logged:
        others = sorted({refs[ref] for ref in kept} | {await depot.tip(), depot.facts.base_sha})
        listed = await depot.run(
            ["merge-base", "--independent", *sorted({*others, *logged.values()})], purpose="thinning out rescue refs"
        )
        independent = set(listed.stdout.split()) - set(others)
        needed = {sha: ref for ref, sha in logged.items() if sha in independent}
        drop = "".join(f"delete {ref}\n" for ref in logged if ref not in needed.values())
        await depot.run(["update-ref", "--no-deref", "--stdin"], stdin=drop)
        kept += needed.values()
    return tuple(sorted(kept))


def _away(depot: Depot, workspace: Workspace) -> None:
    for name, folder in _parts(workspace):
        target = depot.paths.tmp / f"removed-{workspace.agent}-{name}"
        discard(target)
        folder.rename(target)


def _sweep(depot: Depot, agent: str) -> None:
    """What cannot be deleted stays in the run's temporary folder; the work is in the Depot."""
    for name in ("wt", "git"):
        try:
            discard(depot.paths.tmp / f"removed-{agent}-{name}")
        except OSError:
            continue


def _parts(workspace: Workspace) -> tuple[tuple[str, Path], ...]:
    return (("wt", workspace.path), ("git", workspace.git_dir))
