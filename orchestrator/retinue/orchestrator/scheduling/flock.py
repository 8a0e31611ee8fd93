"""The kernel's word on who works in a workspace: two lock files per workspace, outside every repository.

Turnstile: take `gate` exclusively, then `lock` (shared or exclusive), then free `gate`. A writer that waits for `lock`
holds the gate, so no later reader slips past it. The files are keyed by device and inode of the workspace's root, are
never deleted, and do not depend on any run's state folder: two runs, schedulers or clusters on one machine exclude
each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem


def workspace_key(root: Path) -> str:
    """The same for every path that leads to the same folder on this machine."""
    found = root.stat()
    return f"{found.st_dev:x}-{found.st_ino:x}"


@dataclass(slots=True)
class WorkspaceLock:
    """Locks of one workspace. Every hold opens a descriptor of its own: `flock` belongs to the open file."""

    folder: Path
    key: str

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @asynccontextmanager
    async def hold(self, *, exclusive: bool, waiters: ThreadPoolExecutor) -> AsyncGenerator[int]:
        """Yield the descriptor that holds the lock. Who inherits it holds the lock too, until its copy is closed."""
        fd = self._open("lock")
        try:
            if not self._at_once(fd, exclusive=exclusive):
                await _in_thread(waiters, self._turnstile, fd, exclusive)
            yield fd
        finally:
            # Closing is not enough to unlock while a keeper still has its copy, which is what keeps the tree fenced.
            os.close(fd)

    @contextmanager
    def if_free(self) -> Generator[bool]:
        """Hold it alone if that can be had at once; says whether it is held."""
        fd = self._open("lock")
        try:
            yield self._at_once(fd, exclusive=True)
        finally:
            os.close(fd)

    def _open(self, which: str) -> int:
        path = self.folder / f"{self.key}.{which}"
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentProblem(f"cannot open the workspace lock {path}: {error.strerror}") from error

    def _at_once(self, fd: int, *, exclusive: bool) -> bool:
        gate = self._open("gate")
        try:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(fd, _mode(exclusive) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(gate)

    def _turnstile(self, fd: int, exclusive: bool) -> None:
        gate = self._open("gate")
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(fd, _mode(exclusive))
        finally:
            os.close(gate)


def _mode(exclusive: bool) -> int:
    return fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH


async def _in_thread(
    waiters: ThreadPoolExecutor, turnstile: Callable[[int, bool], None], fd: int, exclusive: bool
) -> None:
    """Wait for a blocking lock. When cancelled, the lock is given back as soon as the thread has got it."""
    copy = os.dup(fd)
    waiting = asyncio.get_running_loop().run_in_executor(waiters, turnstile, copy, exclusive)
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        waiting.add_done_callback(lambda _done: _release(copy))
        raise
    else:
        os.close(copy)


def _release(fd: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
