"""Taking a finished run away: into the trash, standing alone, so that it can be brought back."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces.bare import GuardTripped
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Git, GitError
from retinue.orchestrator.workspaces.rescue import Removal, remove_agent
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import StateError


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Where the run lies now, and what became of each workspace."""

    trashed: Path
    removals: tuple[Removal, ...]


async def clean_run(git: Git, run_dir: Path, trash_dir: Path, user: UserRepo | None) -> Cleaned:
    """Move a stopped run to the trash. The Depot first gets a copy of every object that it borrowed, and is checked.

    `user` is the repository whose pin is dropped, None when it is gone. When anything fails the run stays as it is.
    """
    target = trash_dir / run_dir.name
    if await asyncio.to_thread(target.exists):
        raise StateError(f"{target} is in the trash already; move it away first")
    removals: tuple[Removal, ...] = ()
    if await asyncio.to_thread((run_dir / "depot.git").is_dir):
        depot = await Depot.open(git, run_dir)
        removals = tuple(await asyncio.gather(*(remove_agent(depot, agent) for agent in list(depot.workspaces))))
        for removal in removals:
            if removal.kept is not None:
                await _stand_alone_kept(depot, removal.agent)
        await stand_alone(git, depot.paths.depot)
        if user is not None:
            await user.unpin(depot.facts.run)
    await asyncio.to_thread(_move, run_dir, target)
    return Cleaned(target, removals)


async def undo_clean(trashed: Path, runs_dir: Path) -> Path:
    """Bring a run back from the trash to where it was: its paths are true again, and it borrows from nobody."""
    target = runs_dir / trashed.name
    if not await asyncio.to_thread(trashed.is_dir):
        raise StateError(f"there is no {trashed.name} in the trash")
    if await asyncio.to_thread(target.exists):
        raise StateError(f"{target} is there again already; move it away first")
    await asyncio.to_thread(_move, trashed, target)
    return target


async def stand_alone(git: Git, repository: Path) -> None:
    """Copy all borrowed objects that refs reach, keep all of its own, and prove it by looking without the loan."""
    alternates = repository / "objects/info/alternates"
    aside = alternates.with_name("alternates.before-clean")
    await asyncio.to_thread(_finish_interrupted, alternates, aside)
    if not await asyncio.to_thread(alternates.is_file):
        return
    await git.run(
        ["repack", "-a", "-d", "--keep-unreachable", "--quiet"],
        purpose=f"making {repository.name} independent",
        git_dir=repository,
        deadline_s=1_800,
    )
    await asyncio.to_thread(alternates.rename, aside)
    try:
        await git.run(
            ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"],
            purpose=f"checking that {repository.name} is whole",
            git_dir=repository,
            deadline_s=1_800,
        )
    except BaseException:
        await asyncio.to_thread(aside.rename, alternates)
        raise
    await asyncio.to_thread(aside.unlink)


async def _stand_alone_kept(depot: Depot, agent: str) -> None:
    """A workspace that was kept still borrows from the user's repository; no git runs where the guard has tripped."""
    try:
        depot.guard(agent)
    except GuardTripped as changed:
        raise GitError(
            f"the workspace of {agent} cannot be made to stand alone, so the run is kept: {changed}"
        ) from None
    await stand_alone(depot.git, depot.workspace(agent).git_dir)


def _finish_interrupted(alternates: Path, aside: Path) -> None:
    """A check that was cut short proved nothing: begin again with the loan."""
    if aside.is_file() and not alternates.exists():
        aside.rename(alternates)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(source, target)
