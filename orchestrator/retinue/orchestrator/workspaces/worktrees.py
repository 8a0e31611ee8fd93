"""The files of a linked worktree, read and removed as files: git is never started inside one."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from retinue.orchestrator.workspaces.git import GitError


def admin_folder(worktree: Path, git_dir: Path) -> Path:
    """The folder in `git_dir/worktrees` that belongs to a worktree. Git chooses its name, so its content tells."""
    for folder in sorted((git_dir / "worktrees").glob("*")):
        pointer = folder / "gitdir"
        if pointer.is_file() and Path(pointer.read_text("utf-8", "surrogateescape").strip()) == worktree / ".git":
            return folder
    raise GitError(f"{git_dir} knows no worktree {worktree}")


def read_head(worktree: Path, git_dir: Path) -> str:
    """What the worktree's HEAD says: `refs/heads/…` or a commit."""
    return (
        (admin_folder(worktree, git_dir) / "HEAD").read_text("utf-8", "surrogateescape").strip().removeprefix("ref: ")
    )


def verify_start(worktree: Path, git_dir: Path, branch: str, sha: str) -> None:
    """An agent that does not stand in its worktree, on its branch, at its base does not start."""
    head = read_head(worktree, git_dir)
    ref = git_dir / f"refs/heads/{branch}"
    at = ref.read_text().strip() if ref.is_file() else "nothing"
    if head != f"refs/heads/{branch}" or at != sha:
        raise GitError(f"the new worktree {worktree} stands on {head} at {at}, not on {branch} at {sha}")


def nested_repositories(worktree: Path) -> Iterator[Path]:
    """Folders below the top of a worktree that have a `.git` of their own, ignored ones included."""
    for folder, folders, files in os.walk(worktree):
        if Path(folder) != worktree and (".git" in folders or ".git" in files):
            yield Path(folder)
            folders.clear()
        elif ".git" in folders:
            folders.remove(".git")


def discard(*folders: Path) -> None:
    """Delete folders, also where an agent took its own write permission away. What cannot be deleted raises OSError."""
    for folder in folders:
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder, onerror=_make_writable)


def _make_writable(remove: Callable[..., object], path: str, _error: object) -> None:
    parent = os.path.dirname(path)
    os.chmod(parent, stat.S_IRWXU)
    if not os.path.islink(path):
        os.chmod(path, stat.S_IRWXU)
    remove(path)
