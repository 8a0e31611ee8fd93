"""The kernel's lock on a workspace: real files, real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from retinue.orchestrator.scheduling.flock import WorkspaceLock, workspace_key


@pytest.fixture
def waiters() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def lock(tmp_path: Path) -> WorkspaceLock:
    root = tmp_path / "workspace"
    root.mkdir()
    return WorkspaceLock(tmp_path / "locks", workspace_key(root))


async def test_readers_share_and_a_writer_waits(lock: WorkspaceLock, waiters: ThreadPoolExecutor) -> None:
    async def write() -> None:
        async with lock.hold(exclusive=True, waiters=waiters):
            order.append("write")

    order: list[str] = []
    async with AsyncExitStack() as readers:
        await readers.enter_async_context(lock.hold(exclusive=False, waiters=waiters))
        await readers.enter_async_context(lock.hold(exclusive=False, waiters=waiters))
        writer = asyncio.create_task(write())
        await asyncio.sleep(0.05)
        order.append("readers leave")
    await asyncio.wait_for(writer, 5)
    assert order == ["readers leave", "write"]


async def test_a_waiting_writer_lets_no_later_reader_pass(lock: WorkspaceLock, waiters: ThreadPoolExecutor) -> None:
    order: list[str] = []

    async def take(name: str, *, exclusive: bool) -> None:
        async with lock.hold(exclusive=exclusive, waiters=waiters):
            order.append(name)
            await asyncio.sleep(0.02)

    async with lock.hold(exclusive=False, waiters=waiters):
        writer = asyncio.create_task(take("writer", exclusive=True))
        await asyncio.sleep(0.1)
        reader = asyncio.create_task(take("reader", exclusive=False))
        await asyncio.sleep(0.1)
        assert order == []
    await asyncio.wait_for(asyncio.gather(writer, reader), 5)
    assert order == ["writer", "reader"]


async def test_a_cancelled_wait_leaves_no_lock_behind(lock: WorkspaceLock, waiters: ThreadPoolExecutor) -> None:
    async def take() -> None:
        async with lock.hold(exclusive=True, waiters=waiters):
            raise AssertionError("never granted")

    async with lock.hold(exclusive=True, waiters=waiters):
        waiting = asyncio.create_task(take())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5):
        async with lock.hold(exclusive=True, waiters=waiters):
            pass


async def test_a_killed_holder_frees_the_lock(lock: WorkspaceLock, waiters: ThreadPoolExecutor) -> None:
    code = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    path = lock.folder / f"{lock.key}.lock"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
        waiting = asyncio.create_task(lock.hold(exclusive=True, waiters=waiters).__aenter__())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        os.kill(holder.pid, signal.SIGKILL)
        assert await asyncio.wait_for(waiting, 5) >= 0


def test_every_path_to_a_folder_has_one_key(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    assert workspace_key(tmp_path / "link") == workspace_key(root) != workspace_key(tmp_path)
