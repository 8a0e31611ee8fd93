"""The user's repository. We resolve the base, read what agents need of it, pin it, and move one ref; nothing else.

Its own checkout, index, branches and worktree list are never touched.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.git import FETCH_FLAGS, Git, GitError, GitResult, upload_pack_command
from retinue.orchestrator.workspaces.user_config import UserConfig, read_user_config
from retinue.tools.errors import SpecError, StateError

MAX_ALTERNATES = 3
_UNWRITABLE = re.compile(r"Permission denied|Read-only file system|unable to create directory")
BaseKind = Literal["head", "ref", "worktree"]


@dataclass(frozen=True, slots=True)
class Base:
    """What a run starts from. For `worktree`, `sha` is HEAD until the Depot has made the snapshot."""

    kind: BaseKind
    sha: str
    object_format: str
    dirty: bool
    description: str


@dataclass(frozen=True, slots=True)
class UserRepo:
    git: Git
    root: Path
    git_dir: Path
    common_dir: Path
    object_format: str
    config: UserConfig

    @classmethod
    async def open(cls, git: Git, path: Path, *, home: Path | None = None) -> UserRepo:
        """The repository that `path` lies in. Raises SpecError, with a remedy, for one that cannot be used."""
        root = await asyncio.to_thread(_find_root, path)
        found = await git.run(
            ["rev-parse", "--is-bare-repository", "--absolute-git-dir", "--git-common-dir", "--show-object-format"],
            purpose=f"opening the repository {root}",
            cwd=root,
            config=[("safe.directory", str(root))],
            check=False,
        )
        answers = found.stdout.splitlines()
        if found.code != 0 or len(answers) != 4:
            raise SpecError(f"{root}: git cannot open this repository: {found.stderr.strip()[-500:]}")
        if answers[0] == "true":
            raise SpecError(f"{root}: this is a bare repository; name a checkout of it (`git clone {root}`)")
        git_dir = Path(answers[1])
        user_config = await read_user_config(git, git_dir, root, home or Path.home())
        user_config.refuse_unusable(root)
        repo = cls(git, root, git_dir, (root / answers[2]).resolve(), answers[3], user_config)
        await asyncio.to_thread(borrowed_objects, repo.objects)
        await repo._refuse_unusable_refs()
        return repo

    @property
    def objects(self) -> Path:
        return self.common_dir / "objects"

    async def run(
        self, args: Sequence[str], *, purpose: str = "", check: bool = True, stdin: str | None = None
    ) -> GitResult:
        """Our git in the user's repository: nothing that its configuration names is run."""
        return await self.git.run(
            args,
            purpose=purpose,
            git_dir=self.git_dir,
            cwd=self.root,
            env={"GIT_WORK_TREE": str(self.root)},
            config=[("safe.directory", str(self.root)), *self.config.overrides],
            check=check,
            stdin=stdin,
        )

    async def resolve_base(self, base: str) -> Base:
        """`head`, `worktree`, or anything that names a commit here."""
        name = "HEAD" if base in ("head", "worktree") else base
        sha = await self.commit_of(name)
        if sha is None:
            raise SpecError(
                f"repo.base: {base!r} names no commit in {self.root}. "
                "Write head, worktree, or a branch, tag or commit that `git rev-parse` knows there."
            )
        dirty, branch = await asyncio.gather(
            self._dirty(), self.run(["symbolic-ref", "-q", "--short", "HEAD"], check=False)
        )
        kind: BaseKind = "head" if base == "head" else "worktree" if base == "worktree" else "ref"
        called = (branch.line or "a detached HEAD") if kind != "ref" else base
        return Base(kind, sha, self.object_format, dirty, _describe(kind, called, sha, dirty))

    async def commit_of(self, name: str) -> str | None:
        found = await self.run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"], check=False
        )
        return found.line if found.code == 0 else None

    async def is_ancestor(self, older: str, newer: str) -> bool:
        """False, too, when one of the commits is not here."""
        return (await self.run(["merge-base", "--is-ancestor", older, newer], check=False)).code == 0

    async def checked_out(self, ref: str) -> Path | None:
        """The worktree of the user that stands on `ref`."""
        listing = await self.run(["worktree", "list", "--porcelain", "-z"], purpose="listing the worktrees")
        for record in listing.stdout.split("\0\0"):
            lines = record.strip("\0").split("\0")
            if f"branch {ref}" in lines:
                return Path(lines[0].removeprefix("worktree "))
        return None

    async def pin(self, run: str, sha: str) -> None:
        """Keep the base from the user's own gc for as long as the run borrows it."""
        await self._keep_refs([names.pin_ref(run), sha], "pinning the base")

    async def unpin(self, run: str) -> None:
        for ref in (names.pin_ref(run), names.incoming_ref(run)):
            await self._keep_refs(["-d", ref], "removing the pin of the run")

    async def _keep_refs(self, args: Sequence[str], purpose: str) -> None:
        """Where a launch first writes to the repository: that it cannot is said in words of its own."""
        try:
            await self.run(["update-ref", "--no-deref", *args], purpose=purpose)
        except GitError as error:
            if not _UNWRITABLE.search(str(error)):
                raise
            raise GitError(
                f"the repository {self.root} cannot be written, and a run keeps its base and its result there: make "
                f"{self.common_dir} writable for you, or work in a clone of it ({error})"
            ) from error

    async def fetch_from(self, depot: Path, refspec: str) -> None:
        """Bring one ref of the Depot, its objects checked, without touching anything else."""
        self.config.refuse_rewritten(depot)
        await self.git.run(
            ["fetch", *FETCH_FLAGS, f"--upload-pack={upload_pack_command()}", str(depot), refspec],
            purpose="bringing the team's work into your repository",
            git_dir=self.git_dir,
            cwd=self.root,
            config=[
                ("safe.directory", str(self.root)),
                ("safe.directory", str(depot)),
                ("fetch.fsckObjects", "true"),
                *self.config.overrides,
            ],
        )

    async def mirror_result(self, depot: Path, run: str, sha: str, expected_old: str | None) -> None:
        """Move `retinue/<run>/result` to `sha`, the Depot's tip, with one update-ref from its expected value."""
        ref, incoming = names.result_ref(run), names.incoming_ref(run)
        holder = await self.checked_out(ref)
        if holder is not None:
            raise StateError(
                f"{names.result_branch(run)} is checked out in {holder}, so it was not moved; "
                f"switch that checkout to another branch, then `retinue land {run}`"
            )
        try:
            await self.fetch_from(depot, f"+{names.TIP}:{incoming}")
            arrived = await self.commit_of(incoming)
            if arrived != sha:
                raise StateError(f"the Depot's tip is {arrived}, not {sha}: {names.result_branch(run)} was not moved")
            await self._move(ref, sha, expected_old)
        finally:
            await self.run(["update-ref", "--no-deref", "-d", incoming], check=False)

    async def _move(self, ref: str, sha: str, expected_old: str | None) -> None:
        expected = expected_old or "0" * len(sha)
        moved = await self.run(["update-ref", "--no-deref", ref, sha, expected], check=False)
        if moved.code != 0:
            raise StateError(
                f"{ref} is not at {expected_old or 'nothing'} any more, so it was left alone "
                f"({moved.stderr.strip()[-300:]}); the work is {sha}"
            )

    async def move_branch(self, ref: str, sha: str, expected_old: str | None) -> bool:
        """Move a branch that nobody has checked out; False when it is not where it was."""
        try:
            await self._move(ref, sha, expected_old)
        except StateError:
            return False
        return True

    async def _dirty(self) -> bool:
        status = await self.run(
            ["status", "--porcelain", "-z", "--ignore-submodules=all", "--untracked-files=normal"],
            purpose="looking for uncommitted changes",
        )
        return bool(status.stdout)

    async def _refuse_unusable_refs(self) -> None:
        head, retinue = await asyncio.gather(
            self.commit_of("HEAD"), self.run(["show-ref", "--verify", "--quiet", "refs/heads/retinue"], check=False)
        )
        if head is None:
            raise SpecError(f"{self.root}: there is no commit yet; make one (`git commit --allow-empty -m start`)")
        if retinue.code == 0:
            raise SpecError(
                f"{self.root}: a branch named `retinue` leaves no room for retinue/<run>/result; "
                "rename it (`git branch -m retinue retinue-old`)"
            )


def _find_root(path: Path) -> Path:
    start = path.expanduser().resolve()
    if not start.is_dir():
        raise SpecError(f"repo.path: {path} is not a folder; name a git checkout")
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
        if all((folder / part).exists() for part in ("HEAD", "objects", "refs")):
            raise SpecError(f"{folder}: this is a bare repository; name a checkout of it (`git clone {folder}`)")
    raise SpecError(f"{start}: not a git repository; run `git init`, commit something, or name another repo.path")


def borrowed_objects(objects: Path, depth: int = 0) -> list[Path]:
    """The folder of objects and all that it borrows from. SpecError where that goes deeper than git follows."""
    if depth > MAX_ALTERNATES:
        raise SpecError(
            f"this repository borrows objects over more than {MAX_ALTERNATES} others, deeper than git follows; "
            "make it stand alone (`git repack -a -d`, then remove .git/objects/info/alternates)"
        )
    found = [objects]
    listed = objects / "info/alternates"
    if listed.is_file():
        for line in listed.read_text("utf-8", "surrogateescape").splitlines():
            if line and not line.startswith("#"):
                found += borrowed_objects(objects / line, depth + 1)
    return found


def _describe(kind: BaseKind, called: str, sha: str, dirty: bool) -> str:
    at = f"{called} at {sha[:10]}"
    if kind == "worktree":
        return f"{at} with your uncommitted changes" if dirty else at
    return f"{at}; your uncommitted changes are not part of it" if dirty else at
