"""The checks that decide whether a candidate becomes the tip, run in a worktree that nobody works in.

The commands run code that agents wrote, so what they leave behind is undone with explicit paths: no git of ours looks
for a repository in there.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import GitError
from retinue.orchestrator.workspaces.include import copy_included
from retinue.orchestrator.workspaces.worktrees import admin_folder, discard
from retinue.tools.errors import EnvironmentProblem


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    exit_code: int
    output: str
    timed_out: bool


class CommandRunner(Protocol):
    async def run(self, command: str, cwd: Path, timeout_s: float) -> CommandOutcome:
        """Run a shell command to its end or its time-out."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """A command whose exit code 0 means yes. `name` is what the author is told: `done_when`, `merge.verify`."""

    name: str
    command: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` and `output` are of the first check that failed."""

    ok: bool
    reason: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Checkout:
    """`fresh`: the worktree was made just now, and nothing that set-up makes is in it."""

    folder: Path
    fresh: bool


async def verify(
    depot: Depot, candidate: str, checks: Sequence[Check], runner: CommandRunner, *, setup: Sequence[Check] = ()
) -> Verdict:
    """Check the candidate out and run every check until one says no. One caller at a time.

    A verify worktree that had to be made runs `setup` first; a failure there is an EnvironmentProblem, not the work's.
    """
    if not checks:
        return Verdict(True)
    checkout = await check_out(depot, candidate)
    if checkout.fresh:
        prepared = await _all(setup, checkout.folder, runner)
        if not prepared.ok:
            await asyncio.to_thread(discard, checkout.folder)
            raise EnvironmentProblem(f"the verify worktree could not be set up: {prepared.reason}\n{prepared.output}")
    return await _all(checks, checkout.folder, runner)


async def _all(checks: Sequence[Check], folder: Path, runner: CommandRunner) -> Verdict:
    for check in checks:
        outcome = await runner.run(check.command, folder, check.timeout_s)
        if outcome.timed_out:
            return Verdict(
                False, f"{check.name} did not finish within {check.timeout_s:g} s: {check.command}", outcome.output
            )
        if outcome.exit_code != 0:
            return Verdict(
                False, f"{check.name} failed with exit code {outcome.exit_code}: {check.command}", outcome.output
            )
    return Verdict(True)


async def check_out(depot: Depot, commit: str) -> Checkout:
    """The run's `verify` worktree, exactly at `commit`. Ignored files stay: what set-up made is needed again."""
    folder, index = depot.paths.verify, depot.paths.index(".verify")
    try:
        admin = await asyncio.to_thread(_usable, folder, depot.paths.depot, index)
    except GitError:
        return await _make(depot, folder, commit, index)
    # With an index of ours: in its own, a check may have marked files as never to be looked at.
    inside = {"GIT_DIR": str(admin), "GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}
    await depot.run(["update-ref", "--no-deref", "HEAD", commit], env=inside, cwd=folder)
    await depot.run(["reset", "--quiet", "--hard", commit], purpose="checking out a candidate", env=inside, cwd=folder)
    await depot.run(["clean", "--quiet", "-ffd"], purpose="cleaning the verify worktree", env=inside, cwd=folder)
    await asyncio.to_thread(shutil.copy2, index, admin / "index")
    return Checkout(folder, fresh=False)


async def _make(depot: Depot, folder: Path, commit: str, index: Path) -> Checkout:
    await asyncio.to_thread(discard, folder)
    await depot.run(["worktree", "prune", "--expire=now"])
    command = ["worktree", "add", "--quiet", "--force", "--force", "--detach", "--lock", "--reason", "verification"]
    await depot.run([*command, str(folder), commit], purpose="making the verify worktree")
    await asyncio.to_thread(shutil.copy2, admin_folder(folder, depot.paths.depot) / "index", index)
    await asyncio.to_thread(copy_included, Path(depot.facts.user_root), depot.facts.include, folder)
    return Checkout(folder, fresh=True)


def _usable(folder: Path, depot: Path, index: Path) -> Path:
    """The worktree's admin folder, after putting right what a check may have bent. GitError: start anew."""
    admin = admin_folder(folder, depot)
    common = admin / "commondir"
    bent = (admin / "config.worktree").exists() or common.is_symlink() or common.read_text().strip() != "../.."
    if bent or folder.is_symlink() or not folder.is_dir() or not index.is_file():
        shutil.rmtree(admin)
        raise GitError(f"the verify worktree {folder} was changed by a check")
    pointer, wanted = folder / ".git", f"gitdir: {admin}\n"
    if pointer.is_symlink() or not pointer.is_file() or pointer.read_text() != wanted:
        discard_any(pointer)
        pointer.write_text(wanted)
    for lock in (*admin.glob("*.lock"), *index.parent.glob(f"{index.name}.lock")):
        lock.unlink()
    for operation in ("rebase-merge", "rebase-apply", "sequencer"):
        discard(admin / operation)
    return admin


def discard_any(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        discard(path)
    else:
        path.unlink(missing_ok=True)
