"""The lock of a run: one writer group. Held by the Team's process; the kernel frees it when that dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from retinue.tools.errors import EnvironmentProblem, StateError

NETWORK_TYPES = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "afpfs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "ncpfs",
        "davfs",
        "webdav",
        "sshfs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.davfs",
        "fuse.glusterfs",
        "fuse.ceph",
    }
)
"""Where `flock` or an append at the end of a file may hold on one machine only, or not at all."""

_PROBES = 100
_PROBE_PAUSE_S = 0.002


class Mount(NamedTuple):
    point: str
    fstype: str


class RunLock:
    """Held from `acquire` to `release`, or to the death of the process. A child process does not inherit it."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def acquire(cls, path: Path, *, pause: Callable[[float], None] = time.sleep) -> RunLock:
        """Does not wait for a holder. StateError: the run is live. EnvironmentProblem: no place for a lock."""
        refuse_network_filesystem(path.parent, mounts_of_this_machine())
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentProblem(f"the run's lock {path} cannot be opened: {error.strerror}") from error
        try:
            _lock(fd, path, pause)
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Is the run live? Takes nothing away from who is about to acquire the lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise EnvironmentProblem(f"the run's lock {path} cannot be opened: {error.strerror}") from error
    try:
        return not _try(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def refuse_network_filesystem(folder: Path, mounts: Iterable[Mount]) -> None:
    fstype = filesystem_of(folder.resolve(), mounts)
    if fstype in NETWORK_TYPES:
        raise EnvironmentProblem(
            f"{folder} lies on a network file system ({fstype}), where locks and appends cannot be trusted: "
            "choose a folder on a local disk with --state-dir or XDG_STATE_HOME"
        )


def filesystem_of(path: PurePath, mounts: Iterable[Mount]) -> str:
    """The type of the file system that holds an absolute path: of the deepest mount above it, the last one there."""
    best = Mount("", "")
    for mount in mounts:
        if len(mount.point) >= len(best.point) and path.is_relative_to(mount.point):
            best = mount
    return best.fstype.lower()


def mounts_of_this_machine() -> list[Mount]:
    import psutil  # here: it takes longer to load than reading a run, which needs no lock

    return [Mount(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


def _lock(fd: int, path: Path, pause: Callable[[float], None]) -> None:
    for _ in range(_PROBES):
        if _try(fd, fcntl.LOCK_EX):
            return
        if not _try(fd, fcntl.LOCK_SH):
            break
        # Nobody holds it: someone is just asking `is_held`.
        fcntl.flock(fd, fcntl.LOCK_UN)
        pause(_PROBE_PAUSE_S)
    holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
    by = f" (held by process {holder})" if holder.isdigit() else ""
    run = path.parent.name
    raise StateError(f"run {run} is live{by}: attach with `retinue resume {run}`, or end it with `retinue down {run}`")


def _try(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
