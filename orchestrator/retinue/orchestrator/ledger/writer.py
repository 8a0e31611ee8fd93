"""Appending to a ledger: whole frames, in order, with one fdatasync for all who wait for one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from retinue.orchestrator.ledger.frames import (
    HEADER_SIZE,
    OPENED,
    LedgerError,
    Record,
    encode_frame,
    encode_header,
    known_header,
    new_marker,
)

Body = dict[str, JsonValue]
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskFull(LedgerError):
    """No space for a record. Of the records of the call, the first `written` are in the ledger and the others not."""

    written: int = 0


@dataclass(frozen=True, slots=True)
class Disk:
    """The system calls of a ledger, so that a test can count them and let them fail."""

    write: Callable[[int, bytes], int] = os.write
    sync: Callable[[int], None] = os.fdatasync


def keep(body: Body) -> Body:
    """The redaction of a run without secrets."""
    return body


class LedgerFile:
    """One open ledger of this process, shared by its writers. Appends from any thread; `sync` from one event loop.

    An append is one `write` of whole frames at the end of the file, so frames of several processes never mix. It goes
    to the page cache and is done where it is called; only fdatasync, which waits for the disk, goes to a thread.
    """

    def __init__(self, path: Path, fd: int, marker: bytes, disk: Disk) -> None:
        self.path = path
        self.marker = marker
        self._fd = fd
        self._disk = disk
        self._lock = threading.Lock()
        self._appended = 0
        self._synced = 0
        self._flush: asyncio.Task[None] | None = None
        self._failure: str | None = None
        self._thread: ThreadPoolExecutor | None = None

    @classmethod
    def open(cls, path: Path, *, disk: Disk | None = None, random: Callable[[int], bytes] = os.urandom) -> LedgerFile:
        """Make it when it is not there. LedgerError: not a ledger, another version, no access."""
        try:
            _create(path, new_marker(random(8)))
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise _failed(path, "cannot be opened", error) from error
        try:
            header = known_header(path, os.pread(fd, HEADER_SIZE, 0))
        except BaseException:
            os.close(fd)
            raise
        return cls(path, fd, header.marker, disk or Disk())

    def append(self, frames: Sequence[bytes]) -> None:
        """All of them, adjacent and in order. DiskFull says how many are in; a torn one is passed over by readers."""
        data = b"".join(frames)
        with self._lock:
            try:
                written = self._disk.write(self._fd, data)
            except OSError as error:
                raise _failed(self.path, "cannot be written", error) from error
            self._appended += written
        if written < len(data):
            # The rest is not sent after it: another process may have appended in between.
            raise _full(self.path, _whole(frames, written))

    async def sync(self) -> None:
        """All that was appended before this call is on disk when it returns. Joins the next fdatasync, not the current.

        LedgerError after a failed fdatasync: what was appended since the last good one may be lost, and the kernel will
        not say so again. No promise is made any more; a new incarnation must read the ledger and go on from there.
        """
        target = self._appended
        while self._synced < target:
            if self._failure is not None:
                raise LedgerError(self._failure)
            if self._flush is None:
                self._flush = asyncio.get_running_loop().create_task(self._flush_once())
            # A waiter that is called off must not take the others' fdatasync with it.
            await asyncio.shield(self._flush)

    async def _flush_once(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._own_thread(), self.sync_now)
        except LedgerError:
            pass  # every waiter finds it in `_failure`
        finally:
            self._flush = None

    def sync_now(self) -> None:
        """The same for a caller without an event loop."""
        target = self._appended
        if self._failure is not None:
            raise LedgerError(self._failure)
        try:
            self._disk.sync(self._fd)
        except OSError as error:
            self._failure = str(_failed(self.path, "could not be brought to disk", error))
            raise LedgerError(self._failure) from error
        self._synced = max(self._synced, target)

    def _own_thread(self) -> ThreadPoolExecutor:
        """Its own, so that no tool's blocking work is ever in front of a promise."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        return self._thread

    def close(self) -> None:
        """Waits for a running fdatasync. What was appended stays readable; it is durable only if `sync` said so."""
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class LedgerWriter:
    """One (writer, incarnation). Its first record is `opened`; its records are numbered without gaps, from 0."""

    def __init__(
        self,
        file: LedgerFile,
        writer: str,
        incarnation: int,
        clock: Callable[[], float] = time.time,
        redact: Callable[[Body], Body] = keep,
    ) -> None:
        self.writer = writer
        self.incarnation = incarnation
        self._file = file
        self._clock = clock
        self._redact = redact
        self._next = 0
        self._lock = threading.Lock()
        self.append_sync(OPENED, {})

    @classmethod
    def open(
        cls,
        path: Path,
        writer: str,
        incarnation: int,
        clock: Callable[[], float] = time.time,
        *,
        redact: Callable[[Body], Body] = keep,
        disk: Disk | None = None,
    ) -> LedgerWriter:
        """With a file of its own. Several writers of one process share a `LedgerFile`, and so its fdatasyncs."""
        file = LedgerFile.open(path, disk=disk)
        try:
            return cls(file, writer, incarnation, clock, redact)
        except BaseException:
            file.close()
            raise

    @property
    def path(self) -> Path:
        return self._file.path

    async def append(self, kind: str, body: Body, *, durable: bool = False) -> int:
        """The record's number. Readable at once; on disk when this returns if `durable`, else after the next sync."""
        (n,) = await self.append_many([(kind, body)], durable=durable)
        return n

    async def append_many(self, records: Sequence[tuple[str, Body]], *, durable: bool = False) -> list[int]:
        """Adjacent and in the order given."""
        numbers = self.append_many_sync(records)
        if durable:
            await self.sync()
        return numbers

    def append_sync(self, kind: str, body: Body) -> int:
        (n,) = self.append_many_sync([(kind, body)])
        return n

    def append_many_sync(self, records: Sequence[tuple[str, Body]]) -> list[int]:
        if not records:
            return []
        at = self._clock()
        cleaned = [(kind, self._redact(body)) for kind, body in records]
        with self._lock:
            numbers = list(range(self._next, self._next + len(cleaned)))
            frames = [
                encode_frame(self._file.marker, Record(self.writer, self.incarnation, n, at, kind, body))
                for n, (kind, body) in zip(numbers, cleaned, strict=True)
            ]
            try:
                self._file.append(frames)
            except DiskFull as full:
                self._next += full.written
                raise
            self._next += len(numbers)
        return numbers

    async def sync(self) -> None:
        await self._file.sync()

    def sync_now(self) -> None:
        self._file.sync_now()

    def close(self) -> None:
        """Of a writer that was opened with a path. A shared file is closed by who opened it."""
        self._file.close()


def _create(path: Path, marker: bytes) -> None:
    """Whole or not at all, and only the first of several processes."""
    if path.exists():
        return
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=".ledger-")
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(encode_header(marker))
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _whole(frames: Sequence[bytes], written: int) -> int:
    """How many of the frames lie entirely in the first `written` bytes."""
    count = 0
    for frame in frames:
        written -= len(frame)
        if written < 0:
            break
        count += 1
    return count


def _failed(path: Path, what: str, error: OSError) -> LedgerError:
    if error.errno in _FULL:
        return _full(path, 0)
    return LedgerError(f"the ledger {path} {what} ({error.strerror}): check the disk and the folder's permissions")


def _full(path: Path, written: int) -> DiskFull:
    full = DiskFull(f"no space for the ledger {path}: free space on its disk or quota; work goes on by itself then")
    full.written = written
    return full
