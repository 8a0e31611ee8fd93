"""Reading a ledger: all of it, or what came since the last look. Never writes, takes no lock, needs no process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from retinue.orchestrator.ledger.frames import (
    HEADER_SIZE,
    OPENED,
    FrameDecoder,
    LedgerError,
    Record,
    VoidFilter,
    Wanted,
    known_header,
)
from retinue.tools.errors import StateError

_CHUNK = 1024 * 1024


class Tail:
    """What counts of a ledger, each record once, in file order. The file may not be there yet.

    Records of an incarnation that a later one has replaced are left out, unless `voided` asks for them.
    `writers` and `kinds` choose; what is not asked for costs a checksum and a comparison.
    """

    def __init__(
        self,
        path: Path,
        offset: int = 0,
        *,
        writers: Collection[str] | None = None,
        kinds: Collection[str] | None = None,
        voided: bool = False,
    ) -> None:
        self._fd = -1
        self.path = path
        self._wanted = Wanted(writers, kinds)
        self._voids = None if voided else VoidFilter()
        self._from = max(offset, HEADER_SIZE)
        self._decoder: FrameDecoder | None = None
        self._read = self._from

    @property
    def offset(self) -> int:
        """Where another Tail can go on."""
        return self._from if self._decoder is None else self._decoder.offset

    @property
    def skipped_bytes(self) -> int:
        """How much damage was passed over so far."""
        return 0 if self._decoder is None else self._decoder.skipped_bytes

    def poll(self) -> list[Record]:
        """All that came since the last poll. One fstat when nothing did."""
        found: list[Record] = []
        while batch := self.read_some():
            found += batch[0]
        return found

    def read_some(self) -> tuple[list[Record]] | None:
        """The records of the next piece of the file, which may be none of it; None at its end."""
        decoder = self._open()
        if decoder is None:
            return None
        try:
            size = os.fstat(self._fd).st_size
            if size < self._read:
                raise LedgerError(
                    f"the ledger {self.path} has become shorter than what was read of it: "
                    "something else wrote to it; restore it from a backup"
                )
            data = os.pread(self._fd, _CHUNK, self._read) if size > self._read else b""
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self._read += len(data)
        return ([r for r in decoder.feed(data) if self._counts(r)],) if data else None

    async def follow(
        self, deadline_s: float | None = None, wake: asyncio.Event | None = None, interval: float = 0.05
    ) -> list[Record]:
        """Wait for records. Returns what has come, empty after `deadline_s` seconds or when `wake` is set."""
        loop = asyncio.get_running_loop()
        until = None if deadline_s is None else loop.time() + deadline_s
        while True:
            last = wake is not None and wake.is_set()
            if found := self.poll():
                return found
            left = interval if until is None else min(interval, until - loop.time())
            if last or left <= 0:
                return []
            await _pause(left, wake)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._decoder = None

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _counts(self, record: Record) -> bool:
        return (self._voids is None or self._voids.admits(record)) and record in self._wanted

    def _open(self) -> FrameDecoder | None:
        if self._decoder is not None:
            return self._decoder
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            marker = known_header(self.path, os.pread(self._fd, HEADER_SIZE, 0)).marker
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from error
        if self._voids is not None and self._from > HEADER_SIZE:
            self._learn_voids(marker, self._voids)
        self._decoder = FrameDecoder(marker, self._from, None if self._wanted.everything else self._wanted)
        return self._decoder

    def _learn_voids(self, marker: bytes, voids: VoidFilter) -> None:
        """Who was replaced before the place from which we read."""
        decoder = FrameDecoder(marker, HEADER_SIZE, Wanted(kinds=(OPENED,)))
        at = HEADER_SIZE
        while data := os.pread(self._fd, min(_CHUNK, self._from - at), at):
            at += len(data)
            for record in decoder.feed(data):
                voids.admits(record)


def read_all(
    path: Path,
    *,
    writers: Collection[str] | None = None,
    kinds: Collection[str] | None = None,
    voided: bool = False,
) -> Iterator[Record]:
    """Everything up to the end that the file has when it is reached; see Tail. StateError when there is no file."""
    if not path.exists():
        raise StateError(f"there is no ledger at {path}: the run was never started, or its directory was removed")
    with Tail(path, writers=writers, kinds=kinds, voided=voided) as tail:
        while batch := tail.read_some():
            yield from batch[0]


async def _pause(seconds: float, wake: asyncio.Event | None) -> None:
    if wake is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass


def _unreadable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(f"the ledger {path} cannot be read ({error.strerror}): check the disk and its permissions")
