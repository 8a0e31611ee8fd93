"""What lies at the paths of a policy, and the making of what has to be there. Never follows a symbolic link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox.plan import Kind, Plan
from retinue.tools.shell.sandbox.policy import SandboxPolicy

_FIELDS_BEFORE_NAME = 7

_OURS = 0o555
"""The mode of a folder that stands for nothing: by it and by its emptiness it is known again."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Descriptor:
    """One open folder, to be closed by `closing`."""

    def __init__(self, number: int) -> None:
        self.number = number

    def close(self) -> None:
        os.close(self.number)


def resolved(policy: SandboxPolicy) -> SandboxPolicy:
    """With what is hidden named by where it is, whatever links lead there."""
    return replace(policy, hidden=tuple(Path(os.path.realpath(path)) for path in policy.hidden))


def sockets(listing: Path = Path("/proc/net/unix")) -> tuple[Path, ...]:
    """The sockets that somebody has bound in the file system; a network namespace does not keep from them."""
    lines = listing.read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    named = (line.split(maxsplit=_FIELDS_BEFORE_NAME)[_FIELDS_BEFORE_NAME:] for line in lines)
    return tuple(Path(name[0]) for name in named if name and name[0].startswith("/"))


def look(paths: Iterable[Path]) -> dict[Path, Kind]:
    kinds: dict[Path, Kind] = {}
    for path in sorted(paths, key=lambda path: len(path.parts)):
        above = kinds.get(path.parent) if path != path.parent else "folder"
        kinds[path] = _kind(path) if above is None or above == "folder" else _below(above)
    return kinds


def _kind(path: Path) -> Kind:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            return "blocked"
        if error.errno == errno.EACCES and path.parent.lstat().st_uid != os.geteuid():
            return "absent"  # a folder of somebody else that lets us in no more than it lets the command in
        raise EnvironmentProblem(f"The sandbox cannot look at {path}: {error.strerror}.") from None
    if stat.S_ISDIR(mode):
        return "folder"
    return "blocked" if stat.S_ISLNK(mode) else "file"


def _below(above: Kind) -> Kind:
    """Of a path whose parent is no folder."""
    return "absent" if above == "absent" else "blocked"


def children(folder: Path) -> list[tuple[Path, Kind]]:
    """What lies in a folder; nothing when it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return [(folder / entry.name, _kind_of(entry)) for entry in entries]
    except OSError:
        return []


def _kind_of(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "blocked"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def make(plan: Plan) -> None:
    """Make the folders that a plan needs, each step inside the folder that the step before has opened."""
    for base, path in plan.made:
        try:
            _make_below(base, path.relative_to(base).parts)
        except OSError as error:
            raise EnvironmentProblem(f"The sandbox cannot hold {path}: {error.strerror}.") from None


def _make_below(base: Path, parts: tuple[str, ...]) -> None:
    current = os.open(base, _FOLDER)
    for at, part in enumerate(parts, start=1):
        with closing(_Descriptor(current)) as above:
            with suppress(FileExistsError):
                os.mkdir(part, _OURS if at == len(parts) else 0o755, dir_fd=above.number)
            current = os.open(part, _FOLDER, dir_fd=above.number)
    os.close(current)


def unmake(policy: SandboxPolicy) -> None:
    """Take away the folders that `make` made for what is to stay absent; only while no command runs below them.

    What is mounted on a folder that is removed from outside is gone as well.
    """
    for path in (*policy.protected, *policy.hidden):
        with suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and not mode & 0o222:
                path.rmdir()
