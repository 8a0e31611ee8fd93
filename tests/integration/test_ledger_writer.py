from __future__ import annotations

import asyncio
import errno
import os
import pickle
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.orchestrator.ledger.frames import (
    HEADER_SIZE,
    LedgerError,
    Record,
    UnwritableRecord,
    encode_header,
    new_marker,
)
from retinue.orchestrator.ledger.reader import Tail, read_all
from retinue.orchestrator.ledger.writer import Body, Disk, DiskFull, LedgerFile, LedgerWriter
from retinue.orchestrator.state.redact import Redactor
from retinue.tools.errors import StateError

PATIENCE_S = 20
"""Only a broken ledger makes a test wait so long."""

APPENDER = """
import sys, time
from pathlib import Path
from retinue.orchestrator.ledger.writer import LedgerWriter
path, writer, incarnation, count = sys.argv[1:]
log = LedgerWriter.open(Path(path), writer, int(incarnation), time.time)
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(count)):
    log.append_sync("block", {"text": writer * (n % 700), "i": n})
    if n == 200:
        print("going", flush=True)
"""


def appender(path: Path, writer: str, count: int, incarnation: int = 1) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(path), writer, str(incarnation), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.rlog"


def texts(path: Path, **chosen: list[str]) -> list[JsonValue]:
    return [r.body["text"] for r in read_all(path, **chosen) if r.kind != "opened"]


class Counting:
    """A disk that counts, and holds each fdatasync until it is let go."""

    def __init__(self, *, hold: bool = False) -> None:
        self.syncs = 0
        self.entered = threading.Semaphore(0)
        self.gate = threading.Semaphore(0)
        self.hold = hold
        self.fail: int | None = None

    def disk(self) -> Disk:
        return Disk(sync=self.sync)

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=PATIENCE_S)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        self.entered.release()
        if self.hold:
            self.gate.acquire(timeout=PATIENCE_S)
        if self.fail is not None:
            raise OSError(self.fail, os.strerror(self.fail))
        os.fdatasync(fd)


def test_a_writers_first_record_is_opened_and_its_numbers_have_no_gap(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 3, lambda: 12.5)
    assert [log.append_sync("block", {"i": i}) for i in range(3)] == [1, 2, 3]
    log.close()
    assert list(read_all(path)) == [
        Record("ada", 3, 0, 12.5, "opened", {}),
        *(Record("ada", 3, n, 12.5, "block", {"i": n - 1}) for n in (1, 2, 3)),
    ]


def test_the_file_is_private_and_nothing_else_is_left_beside_it(path: Path) -> None:
    LedgerWriter.open(path, "ada", 1).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_a_second_opening_adds_to_what_is_there(path: Path) -> None:
    for incarnation in (1, 2):
        log = LedgerWriter.open(path, "ada", incarnation)
        log.append_sync("block", {"text": str(incarnation)})
        log.close()
    assert texts(path) == ["1", "2"]


async def test_records_of_one_call_are_adjacent_and_in_order(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    assert await log.append_many([("block", {"text": str(n)}) for n in range(5)], durable=True) == [1, 2, 3, 4, 5]
    assert await log.append_many([]) == []
    assert await log.append("block", {"text": "5"}) == 6
    log.close()
    assert texts(path) == [str(n) for n in range(6)]


def test_what_was_appended_is_readable_at_once(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    tail = Tail(path)
    assert [r.kind for r in tail.poll()] == ["opened"]
    log.append_sync("block", {"text": "now"})
    assert [r.body for r in tail.poll()] == [{"text": "now"}]
    assert tail.poll() == []
    log.close()


def test_secrets_never_reach_the_file(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1, redact=Redactor(["hunter2-hunter2"]).body)
    log.append_sync("block", {"text": "it is hunter2-hunter2"})
    log.close()
    assert b"hunter2" not in path.read_bytes()
    assert texts(path) == ["it is [redacted]"]


def test_a_refused_record_leaves_no_gap(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    bad: Body = {"text": object()}  # pyright: ignore[reportAssignmentType]
    with pytest.raises(UnwritableRecord):
        log.append_many_sync([("block", {"text": "good"}), ("block", bad)])
    assert log.append_sync("block", {"text": "next"}) == 1
    log.close()
    assert texts(path) == ["next"]


async def test_64_waiting_writers_share_a_few_fdatasyncs(path: Path) -> None:
    counting = Counting()
    file = LedgerFile.open(path, disk=counting.disk())
    logs = [LedgerWriter(file, f"w{n}", 1) for n in range(64)]

    async def work(log: LedgerWriter) -> None:
        for i in range(10):
            await log.append("block", {"text": str(i)}, durable=True)

    await asyncio.gather(*map(work, logs))
    file.close()
    assert counting.syncs <= 40
    assert len(list(read_all(path))) == 64 * 11
    for n in (0, 63):
        assert texts(path, writers=[f"w{n}"]) == [str(i) for i in range(10)]


async def test_who_comes_during_an_fdatasync_waits_for_the_next_one(path: Path) -> None:
    counting = Counting(hold=True)
    log = LedgerWriter.open(path, "ada", 1, disk=counting.disk())
    first = asyncio.create_task(log.append("block", {"text": "a"}, durable=True))
    await counting.begun()
    late = [asyncio.create_task(log.append("block", {"text": t}, durable=True)) for t in "bcd"]
    counting.gate.release()
    await first
    await counting.begun()
    assert [task.done() for task in late] == [False] * 3
    counting.gate.release()
    await asyncio.gather(*late)
    assert counting.syncs == 2
    log.close()


async def test_the_loop_goes_on_while_the_disk_works(path: Path) -> None:
    counting = Counting(hold=True)
    log = LedgerWriter.open(path, "ada", 1, disk=counting.disk())
    waiting = asyncio.create_task(log.sync())
    await counting.begun()
    assert await log.append("block", {"text": "meanwhile"}) == 1
    assert not waiting.done()
    counting.gate.release()
    await waiting
    log.close()


async def test_a_waiter_that_is_called_off_does_not_take_the_others_along(path: Path) -> None:
    counting = Counting(hold=True)
    log = LedgerWriter.open(path, "ada", 1, disk=counting.disk())
    waiting = [asyncio.create_task(log.sync()) for _ in range(3)]
    await counting.begun()
    waiting[0].cancel()
    counting.gate.release()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [None, None]
    assert counting.syncs == 1
    log.close()


async def test_nothing_new_needs_no_fdatasync(path: Path) -> None:
    counting = Counting()
    log = LedgerWriter.open(path, "ada", 1, disk=counting.disk())
    await log.sync()
    await log.sync()
    assert counting.syncs == 1
    log.close()


async def test_after_a_failed_fdatasync_nothing_is_promised_until_it_is_opened_again(path: Path) -> None:
    counting = Counting()
    counting.fail = errno.EIO
    log = LedgerWriter.open(path, "ada", 1, disk=counting.disk())
    results = await asyncio.gather(
        *(log.append("block", {"text": t}, durable=True) for t in "ab"), return_exceptions=True
    )
    assert [type(r) for r in results] == [LedgerError, LedgerError]
    assert "could not be brought to disk" in str(results[0])
    counting.fail = None
    for _ in range(2):
        with pytest.raises(LedgerError):
            await log.append("block", {"text": "c"}, durable=True)
    with pytest.raises(LedgerError):
        log.sync_now()
    assert counting.syncs == 1
    log.close()
    again = LedgerWriter.open(path, "ada", 2, disk=counting.disk())
    await again.append("block", {"text": "d"}, durable=True)
    again.close()


def test_sync_now_serves_a_program_without_a_loop(path: Path) -> None:
    counting = Counting()
    log = LedgerWriter.open(path, "human", 1, disk=counting.disk())
    log.append_sync("block", {"text": "x"})
    log.sync_now()
    log.close()
    assert counting.syncs == 1


class Filling:
    """A disk with room for so many bytes. A write that does not fit is short once, then fails."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, fd: int, data: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(fd, data[: self.room])
        self.room -= written
        return written


def test_a_full_disk_is_said_and_work_goes_on_when_there_is_space(path: Path) -> None:
    disk = Filling(10_000)
    log = LedgerWriter.open(path, "ada", 1, disk=Disk(write=disk.write))
    written: list[str] = []

    def fill() -> None:
        for n in range(100):
            log.append_sync("block", {"text": str(n) * 200})
            written.append(str(n) * 200)

    with pytest.raises(DiskFull, match=r"no space for the ledger .*free space"):
        fill()
    for _ in range(3):
        with pytest.raises(DiskFull):
            log.append_sync("block", {"text": "lost"})
    disk.room = 10_000
    assert log.append_sync("block", {"text": "after"}) == len(written) + 1
    log.close()
    assert texts(path) == [*written, "after"]


def test_a_full_disk_says_how_many_of_a_batch_are_in(path: Path) -> None:
    disk = Filling(10_000)
    log = LedgerWriter.open(path, "ada", 1, disk=Disk(write=disk.write))
    batch: list[tuple[str, Body]] = [("block", {"text": str(n) * 900}) for n in range(9)] * 2
    with pytest.raises(DiskFull) as full:
        log.append_many_sync(batch)
    assert 0 < full.value.written < len(batch)
    disk.room = 100_000
    log.append_many_sync(batch[full.value.written :])
    log.close()
    assert texts(path) == [body["text"] for _, body in batch]
    assert [r.n for r in read_all(path)] == list(range(len(batch) + 1))


def test_disk_full_crosses_processes_with_its_count() -> None:
    full = DiskFull("no space")
    full.written = 3
    again = pickle.loads(pickle.dumps(full))
    assert (type(again), str(again), again.written) == (DiskFull, "no space", 3)


def test_an_input_output_error_is_an_error_of_the_ledger_and_no_full_disk(path: Path) -> None:
    def write(_fd: int, _data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(LedgerError, match=r"cannot be written .*Input/output error.*check the disk") as failed:
        LedgerWriter.open(path, "ada", 1, disk=Disk(write=write))
    assert not isinstance(failed.value, DiskFull)


LIMITED = """
import sys, time
from pathlib import Path
from retinue.orchestrator.ledger.writer import DiskFull, LedgerWriter
log = LedgerWriter.open(Path(sys.argv[1]), "ada", 1, time.time)
try:
    for n in range(1000):
        log.append_sync("block", {"text": "x" * 100})
except DiskFull as full:
    print(n, full)
"""


def test_the_kernels_own_limit_ends_in_a_torn_frame_that_readers_pass_over(path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], preexec_fn=limit, capture_output=True, text=True, check=True
    )
    count, _, message = done.stdout.partition(" ")
    assert "no space for the ledger" in message
    assert path.stat().st_size == 20_000
    log = LedgerWriter.open(path, "ada", 2)
    log.append_sync("block", {"text": "after"})
    log.close()
    assert texts(path) == ["x" * 100] * int(count) + ["after"]


def test_two_processes_append_at_once_and_every_record_comes_back(path: Path) -> None:
    both = [appender(path, writer, 8000) for writer in ("ada", "bob")]
    assert [line_of(p) for p in both] == ["ready", "ready"]
    for process in both:
        go(process)
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        process.communicate()
    with Tail(path) as tail:
        records = tail.poll()
        assert tail.skipped_bytes == 0
    for writer in ("ada", "bob"):
        own = [r for r in records if r.writer == writer]
        assert [r.n for r in own] == list(range(8001))
        assert [r.body["text"] for r in own[1:]] == [writer * (n % 700) for n in range(8000)]
    assert sum(a.writer != b.writer for a, b in pairwise(records)) > 2


def test_many_processes_that_make_the_file_at_once_agree_on_one(path: Path) -> None:
    racers = [appender(path, f"w{n}", 0) for n in range(6)]
    for process in racers:
        assert line_of(process) == "ready"
        process.communicate("go\n")
    assert sorted(r.writer for r in read_all(path)) == [f"w{n}" for n in range(6)]


def test_a_killed_writer_loses_nothing_that_it_had_appended(path: Path) -> None:
    victim, other = appender(path, "ada", 10**9), appender(path, "bob", 1000)
    for process in (victim, other):
        assert line_of(process) == "ready"
        go(process)
    assert line_of(victim) == "going"
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    other.communicate()
    heir = LedgerWriter.open(path, "ada", 2)
    heir.append_sync("block", {"i": -1})
    heir.close()
    records = list(read_all(path))
    ada = [r for r in records if r.writer == "ada" and r.incarnation == 1]
    assert len(ada) > 200
    assert [r.n for r in ada] == list(range(len(ada)))
    assert len([r for r in records if r.writer == "bob"]) == 1001
    assert records[-1].body == {"i": -1}


def test_a_replaced_incarnation_that_still_writes_is_not_heard(path: Path) -> None:
    file = LedgerFile.open(path)
    old = LedgerWriter(file, "ada", 1)
    old.append_sync("block", {"text": "before"})
    new = LedgerWriter(file, "ada", 2)
    old.append_sync("block", {"text": "too late"})
    new.append_sync("block", {"text": "new"})
    file.close()
    assert texts(path) == ["before", "new"]
    assert [r.body["text"] for r in read_all(path, kinds=["block"], voided=True)] == ["before", "too late", "new"]
    middle = next(r.offset for r in read_all(path, voided=True) if r.body.get("text") == "too late")
    with Tail(path, middle) as rest:
        assert [r.body["text"] for r in rest.poll()] == ["new"]


def test_a_reader_goes_on_where_another_stopped(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    log.append_sync("block", {"text": "a"})
    with Tail(path) as first:
        first.poll()
        offset = first.offset
    log.append_sync("block", {"text": "b"})
    log.close()
    with Tail(path, offset) as second:
        assert [r.body for r in second.poll()] == [{"text": "b"}]


def test_a_reader_may_come_before_the_file(path: Path) -> None:
    tail = Tail(path, kinds=["block"])
    assert tail.poll() == []
    assert tail.offset == HEADER_SIZE
    log = LedgerWriter.open(path, "ada", 1)
    log.append_sync("block", {"text": "a"})
    log.close()
    assert [r.kind for r in tail.poll()] == ["block"]


def test_a_record_larger_than_any_piece_that_is_read_comes_whole(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    log.append_sync("block", {"text": "x" * 5_000_000})
    log.append_sync("block", {"text": "after"})
    log.close()
    assert [len(str(t)) for t in texts(path)] == [5_000_000, 5]


async def test_following_returns_when_a_record_comes(path: Path) -> None:
    log = LedgerWriter.open(path, "ada", 1)
    with Tail(path) as tail:
        tail.poll()
        following = asyncio.create_task(tail.follow(30, interval=0.001))
        await asyncio.sleep(0)
        log.append_sync("block", {"text": "news"})
        assert [r.body for r in await following] == [{"text": "news"}]
    log.close()


async def test_following_ends_at_its_deadline_or_when_woken(path: Path) -> None:
    LedgerWriter.open(path, "ada", 1).close()
    with Tail(path) as tail:
        assert len(await tail.follow(0)) == 1
        assert await tail.follow(0.01) == []
        wake = asyncio.Event()
        following = asyncio.create_task(tail.follow(None, wake, interval=30))
        await asyncio.sleep(0)
        wake.set()
        assert await following == []


def test_a_missing_ledger_and_a_foreign_file_are_told_apart(path: Path) -> None:
    with pytest.raises(StateError, match="there is no ledger at"):
        list(read_all(path))
    path.write_bytes(b"something else entirely, and long enough for a header")
    with pytest.raises(LedgerError, match="is not a ledger"):
        list(read_all(path))
    with pytest.raises(LedgerError, match="is not a ledger"):
        LedgerWriter.open(path, "ada", 1)
    assert path.read_bytes().startswith(b"something else")


def test_a_ledger_of_another_version_is_neither_read_nor_written(path: Path) -> None:
    header = encode_header(new_marker(b"1234567"), version=2)
    path.write_bytes(header)
    with pytest.raises(LedgerError, match="ledger version 2"):
        Tail(path).poll()
    with pytest.raises(LedgerError, match="ledger version 2"):
        LedgerFile.open(path)
    assert path.read_bytes() == header


def test_a_ledger_that_shrinks_under_its_reader_is_an_error(path: Path) -> None:
    LedgerWriter.open(path, "ada", 1).close()
    with Tail(path) as tail:
        tail.poll()
        os.truncate(path, HEADER_SIZE)
        with pytest.raises(LedgerError, match="has become shorter"):
            tail.poll()


def test_a_folder_that_is_not_there_is_an_error_with_a_remedy(path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cannot be opened .*check the disk and the folder's permissions"):
        LedgerWriter.open(path.parent / "absent" / "ledger.rlog", "ada", 1)


@pytest.fixture
def open_files() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("open_files")
async def test_closing_leaves_no_descriptor_and_no_thread(path: Path) -> None:
    threads = threading.active_count()
    log = LedgerWriter.open(path, "ada", 1)
    await log.append("block", {"text": "a"}, durable=True)
    list(read_all(path))
    Tail(path).poll()
    log.close()
    log.close()
    assert threading.active_count() == threads
    with pytest.raises(LedgerError, match="cannot be written"):
        log.append_sync("block", {})
