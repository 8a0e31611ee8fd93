"""Candidates: what the tip would be with one more submission, made in the Depot without a checkout or a ref."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.orchestrator.merging.submission import conflict_text
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import OURSELVES, GitError, Identity

Strategy = Literal["merge", "rebase"]
ATTRIBUTES = ".gitattributes"
_FORMAT = "%H%x1f%P%x1f%an%x1f%ae%x1f%ad%x1f%B"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit on top of the tip; `kind` nothing means that it is the tip. `rewritten`: old and new of each commit."""

    sha: str
    kind: Literal["merged", "nothing"]
    rewritten: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Conflict:
    """`text` is for the author: which files, what git says, what to do."""

    files: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str
    parents: tuple[str, ...]
    author: Identity
    date: str
    message: str


async def build_candidate(
    depot: Depot, tip: str, sha: str, *, strategy: Strategy, message: str, author: Identity
) -> Candidate | Conflict:
    """The tip with `sha`, as a merge commit by `author` or as its commits replayed. Both must be in the Depot."""
    merge_base = await depot.run(["merge-base", tip, sha], check=False, purpose="comparing the work with the tip")
    if merge_base.code > 1:
        raise GitError(f"the work {sha} cannot be compared with the tip: {merge_base.stderr.strip()[-500:]}")
    if merge_base.code == 1:
        return Conflict(
            (), conflict_text((), "Your branch shares no history with the team's; start again from team/tip.")
        )
    if merge_base.line == sha:
        return Candidate(tip, "nothing")
    work = _Work(depot, await _attributes_of(depot, tip))
    if strategy == "rebase":
        commits = await work.commits(tip, sha)
        if all(len(commit.parents) == 1 for commit in commits):
            return await work.rebase(tip, commits)
    return await work.merge(tip, sha, message, author)


@dataclass(frozen=True, slots=True)
class _Work:
    """`attributes` is a folder with the tip's attributes: git looks for them there, as a bare repository has none."""

    depot: Depot
    attributes: Path

    async def merge(self, tip: str, sha: str, message: str, author: Identity) -> Candidate | Conflict:
        tree = await self._merged_tree(tip, sha)
        if isinstance(tree, Conflict):
            return tree
        if tree == await self._tree_of(tip):
            return Candidate(tip, "nothing")
        return Candidate(await self._commit(tree, (tip, sha), message, author.environment()), "merged")

    async def rebase(self, tip: str, commits: tuple[_Commit, ...]) -> Candidate | Conflict:
        head, tree = tip, await self._tree_of(tip)
        rewritten: list[tuple[str, str]] = []
        for commit in commits:
            if commit.parents == (head,):
                head, tree = commit.sha, await self._tree_of(commit.sha)
                rewritten.append((commit.sha, head))
                continue
            # A commit with the new head's tree on the old parent makes that parent the merge base: a cherry-pick.
            stand_in = await self._commit(tree, commit.parents, "stand-in", OURSELVES.environment())
            merged = await self._merged_tree(stand_in, commit.sha)
            if isinstance(merged, Conflict):
                return merged
            if merged != tree:
                by = {**commit.author.environment(), "GIT_AUTHOR_DATE": commit.date}
                head, tree = await self._commit(merged, (head,), commit.message, by), merged
            rewritten.append((commit.sha, head))
        return Candidate(head, "nothing" if head == tip else "merged", tuple(rewritten))

    async def commits(self, tip: str, sha: str) -> tuple[_Commit, ...]:
        listing = await self.depot.run(
            ["log", "--reverse", "--topo-order", "--date=raw", "-z", f"--format={_FORMAT}", f"{tip}..{sha}"],
            purpose="reading the submitted commits",
        )
        return tuple(_parse(record) for record in listing.split())

    async def _merged_tree(self, ours: str, theirs: str) -> str | Conflict:
        merged = await self.depot.run(
            ["merge-tree", "--write-tree", "--name-only", "-z", "--messages", ours, theirs],
            purpose="merging",
            cwd=self.attributes,
            env={"GIT_WORK_TREE": str(self.attributes)},
            check=False,
        )
        if merged.code == 0:
            return merged.stdout.split("\0", 1)[0]
        if merged.code != 1:
            raise GitError(f"merging failed with exit code {merged.code}: {merged.stderr.strip()[-1000:]}")
        return _conflict(merged.stdout)

    async def _tree_of(self, commit: str) -> str:
        return (await self.depot.run(["rev-parse", f"{commit}^{{tree}}"])).line

    async def _commit(self, tree: str, parents: tuple[str, ...], message: str, env: Mapping[str, str]) -> str:
        args = ["commit-tree", tree, *(part for parent in parents for part in ("-p", parent)), "-F", "-"]
        return (await self.depot.run(args, env=env, stdin=message)).line


async def _attributes_of(depot: Depot, tip: str) -> Path:
    """Merge drivers such as `union` are named in attributes. The tip's own root file counts, never an agent's."""
    folder = depot.paths.own / "attributes"
    blob = await depot.run(["cat-file", "blob", f"{tip}:{ATTRIBUTES}"], check=False)
    await asyncio.to_thread(_write_attributes, folder, blob.stdout if blob.code == 0 else None)
    return folder


def _write_attributes(folder: Path, text: str | None) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / ATTRIBUTES
    if text is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(text, "utf-8", "surrogateescape")


def _parse(record: str) -> _Commit:
    sha, parents, name, email, date, message = record.lstrip("\n").split("\x1f", 5)
    return _Commit(sha, tuple(parents.split()), Identity(name, email), date, message)


def _conflict(output: str) -> Conflict:
    """tree NUL (file NUL)* NUL (count NUL path… NUL kind NUL message NUL)*"""
    named, _, told = output.partition("\0\0")
    files = tuple(dict.fromkeys(named.split("\0")[1:]))
    said = [part.strip() for part in told.split("\0") if part.startswith("CONFLICT (") and ":" in part]
    return Conflict(files, conflict_text(files, "\n".join(said[:50])))
