"""`.worktreeinclude`: ignored files of the user's checkout that every worktree gets a copy of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from retinue.orchestrator.workspaces.user_repo import UserRepo

INCLUDE_FILE = ".worktreeinclude"


async def included_files(user: UserRepo) -> tuple[str, ...]:
    """Files that a pattern of `.worktreeinclude` names and that git ignores in the checkout, relative to its root."""
    patterns = user.root / INCLUDE_FILE
    if not patterns.is_file():
        return ()
    listed = await user.run(
        ["ls-files", "--others", "--ignored", f"--exclude-from={patterns}", "-z"], purpose=f"reading {INCLUDE_FILE}"
    )
    candidates = [name for name in listed.split() if not name.endswith("/")]
    if not candidates:
        return ()
    excludes = user.config.excludes_file
    ignored = await user.git.run(
        ["check-ignore", "-z", "--stdin"],
        purpose=f"reading {INCLUDE_FILE}",
        git_dir=user.git_dir,
        cwd=user.root,
        env={"GIT_WORK_TREE": str(user.root)},
        config=[*user.config.overrides, *([("core.excludesFile", str(excludes))] if excludes else [])],
        stdin="".join(f"{name}\0" for name in candidates),
        check=False,
    )
    return tuple(sorted(ignored.split()))


def exclude_text(user: UserRepo, included: Iterable[str]) -> str:
    """What the user ignores outside of the tree, and every included file: none of it may end up in a commit."""
    parts: list[str] = []
    for file in (user.config.excludes_file, user.common_dir / "info/exclude"):
        if file is not None and file.is_file():
            parts.append(file.read_text("utf-8", "surrogateescape"))
    parts += [f"/{_literal(name)}" for name in included]
    return "\n".join(parts) + "\n"


def copy_included(root: Path, included: Iterable[str], worktree: Path) -> None:
    """Copies, symlinks as symlinks. A file that is gone is passed over; what is already there is kept."""
    for name in included:
        source, target = root / name, worktree / name
        if not (source.is_symlink() or source.is_file()) or target.is_symlink() or target.exists():
            continue
        if any(folder.is_symlink() for folder in _between(worktree, target)):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _between(top: Path, file: Path) -> Iterable[Path]:
    return (folder for folder in file.parents if folder != top and folder.is_relative_to(top))


def _literal(name: str) -> str:
    return re.sub(r"([\\*?\[\] ])", r"\\\1", name)
