"""A tree object of everything in a folder that is not ignored, made without trusting the folder.

`git add` would start a second git inside every submodule and nested repository. So their entries (gitlinks) are taken
out of the index before and put back after; what a nested repository holds is never part of a snapshot.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces.git import OURSELVES, Git, GitResult
from retinue.orchestrator.workspaces.worktrees import nested_repositories

GITLINK = "160000"


@dataclass(frozen=True, slots=True)
class Snapshots:
    """Makes snapshots of `work_tree` into the repository `git_dir`, with an index file of ours."""

    git: Git
    git_dir: Path
    work_tree: Path
    index: Path
    excludes: Path | None = None

    async def tree(self) -> str:
        recorded = await self._gitlinks()
        await self._drop(recorded)
        await self._add()
        await self._drop(await self._gitlinks())
        if recorded:
            await self._run(["update-index", "-z", "--index-info"], stdin="".join(f"{line}\0" for line in recorded))
        return (await self._run(["write-tree"])).line

    async def _add(self) -> None:
        purpose = f"recording the files of {self.work_tree}"
        if (await self._run(["add", "-A"], purpose=purpose, check=False)).code == 0:
            return
        # A repository without a commit cannot even be recorded as a gitlink: leave out by name all that there are.
        nested = await asyncio.to_thread(lambda: list(nested_repositories(self.work_tree)))
        without = [f":(top,exclude,literal){path.relative_to(self.work_tree)}" for path in nested]
        await self._run(["add", "-A", "--", ":/", *without], purpose=purpose)

    async def seed(self, tree_ish: str, index: Path | None = None) -> None:
        """Start from a copy of a ready index where there is one (its time stamps save reading every file)."""
        if await asyncio.to_thread(_copied, index, self.index):
            if (await self._run(["ls-files", "--stage", "--", ":/"], check=False)).code == 0:
                return
            await asyncio.to_thread(self.index.unlink)
        await self._run(["read-tree", tree_ish])

    async def _gitlinks(self) -> tuple[str, ...]:
        listing = await self._run(["ls-files", "--stage", "-z"])
        return tuple(line for line in listing.split() if line.startswith(GITLINK))

    async def _drop(self, gitlinks: tuple[str, ...]) -> None:
        if gitlinks:
            lines = (f"0 {'0' * len(line.split(' ')[1])}\t{line.split(chr(9), 1)[1]}\0" for line in gitlinks)
            await self._run(["update-index", "-z", "--index-info"], stdin="".join(lines))

    async def _run(
        self, args: list[str], *, purpose: str = "", stdin: str | None = None, check: bool = True
    ) -> GitResult:
        return await self.git.run(
            args,
            purpose=purpose or f"a snapshot of {self.work_tree}",
            git_dir=self.git_dir,
            cwd=self.work_tree,
            env={"GIT_WORK_TREE": str(self.work_tree), "GIT_INDEX_FILE": str(self.index)},
            config=[] if self.excludes is None else [("core.excludesFile", str(self.excludes))],
            stdin=stdin,
            check=check,
        )


def _copied(source: Path | None, target: Path) -> bool:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source is None or not source.is_file():
        return False
    shutil.copy2(source, target)
    return True


async def commit_tree(git: Git, git_dir: Path, tree: str, parents: tuple[str, ...], message: str) -> str:
    """A commit of ours, reachable from nothing yet."""
    args = ["commit-tree", tree, *(part for parent in parents for part in ("-p", parent)), "-F", "-"]
    return (await git.run(args, git_dir=git_dir, env=OURSELVES.environment(), stdin=message)).line
