"""A command that is handed over: it goes on without its locks and its time limit, and still dies whole."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.ports import ShellRequest
from retinue.tools.shell.reap import reap
from retinue.tools.shell.runner import KeeperShell

PATH = "/usr/local/bin:/usr/bin:/bin"
ESCAPE = "(setsid bash -c 'echo $$ >>pids; sleep 1000 & echo $! >>pids; wait' >/dev/null 2>&1 </dev/null &)"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[int]:
    """The workspace's lock, taken as an agent takes it."""
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield lock
    os.close(lock)


def request(folder: Path, command: str, **more: object) -> ShellRequest:
    fields: dict[str, object] = {
        "command": command,
        "cwd": folder,
        "env": {"PATH": PATH},
        "timeout_s": 20.0,
        "output_file": folder / "output",
        "tag": f"test/{folder}/",
        **more,
    }
    return ShellRequest(**fields)


def locked(folder: Path) -> bool:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids_in(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


async def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Other processes tell nobody what they do: it is looked for."""
    for _ in range(int(seconds / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


async def test_the_lock_is_held_until_the_hand_over_and_free_while_the_command_goes_on(
    tmp_path: Path, held: int
) -> None:
    command = await KeeperShell().start(request(tmp_path, "until [ -e go ]; do sleep 0.01; done", keep_fds=(held,)))
    assert locked(tmp_path)
    assert await command.hand_over(tmp_path / "task")
    assert not locked(tmp_path)
    (tmp_path / "go").touch()
    assert (await command.wait()).exit_code == 0


async def test_a_command_that_is_not_handed_over_holds_its_lock_until_its_whole_tree_is_gone(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    stubborn = "(setsid bash -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 0.05; done' >/dev/null 2>&1 &)"
    command = await KeeperShell().start(
        request(tmp_path, f"{stubborn}; until [ -e pids ]; do sleep 0.01; done", keep_fds=(lock,))
    )
    os.close(lock)
    await until(lambda: bool(pids_in(tmp_path)))
    (survivor,) = pids_in(tmp_path)
    seen = 0
    while alive(survivor):
        assert locked(tmp_path) or not alive(survivor)
        seen += 1
        await asyncio.sleep(0.01)
    assert seen > 1
    assert (await command.wait()).killed >= 1
    assert not locked(tmp_path)


async def test_a_hand_over_lifts_the_time_limit_and_moves_the_output(tmp_path: Path) -> None:
    text = "echo early; until [ -e go ]; do sleep 0.01; done; echo late"
    command = await KeeperShell().start(request(tmp_path, text, timeout_s=0.5))
    await until(lambda: (tmp_path / "output").exists() and (tmp_path / "output").stat().st_size > 0)
    assert await command.hand_over(tmp_path / "task")
    assert command.output_file == tmp_path / "task"
    await asyncio.sleep(0.7)
    (tmp_path / "go").touch()
    outcome = await command.wait()
    assert (outcome.exit_code, outcome.timed_out, outcome.output) == (0, False, "early\nlate\n")
    assert (tmp_path / "task").read_text() == "early\nlate\n"
    assert not (tmp_path / "output").exists()


async def test_a_limit_of_its_own_ends_a_command_in_the_background(tmp_path: Path) -> None:
    command = await KeeperShell().start(request(tmp_path, "sleep 1000", background_s=0.4))
    assert await command.hand_over(tmp_path / "output")
    assert (await command.wait()).timed_out


async def test_a_command_that_has_ended_is_not_handed_over(tmp_path: Path) -> None:
    command = await KeeperShell().start(request(tmp_path, "echo hi; exit 3"))
    assert (await command.wait()).exit_code == 3
    assert not await command.hand_over(tmp_path / "task")
    assert (await command.wait()).output == "hi\n"
    assert command.output_file == tmp_path / "output"


async def test_a_command_on_its_way_out_is_not_handed_over_and_keeps_its_lock(tmp_path: Path, held: int) -> None:
    """It has ended; what it left behind has not."""
    left = (
        "(setsid bash -c 'trap \"\" TERM; echo $$ >>pids; sleep 1000' >/dev/null 2>&1 &); until [ -e pids ]; do :; done"
    )
    command = await KeeperShell().start(request(tmp_path, f"{left}; exit 4", keep_fds=(held,)))
    await until(lambda: bool(pids_in(tmp_path)))
    await asyncio.sleep(0.1)
    assert not await command.hand_over(tmp_path / "task")
    assert (await command.wait()).exit_code == 4


async def test_stopping_it_leaves_nothing_of_its_tree(tmp_path: Path) -> None:
    command = await KeeperShell().start(request(tmp_path, f"{ESCAPE}; {ESCAPE}; echo $$ >>pids; sleep 1000"))
    assert await command.hand_over(tmp_path / "task")
    await until(lambda: len(pids_in(tmp_path)) == 5)
    await command.stop()
    assert not any(alive(pid) for pid in pids_in(tmp_path))
    assert reap(f"test/{tmp_path}/") == 0
    assert "[stopped from outside]" in (await command.wait()).output


async def test_giving_up_waiting_stops_nothing(tmp_path: Path) -> None:
    command = await KeeperShell().start(request(tmp_path, "until [ -e go ]; do sleep 0.01; done; echo done"))
    waiting = asyncio.create_task(command.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (tmp_path / "go").touch()
    assert (await command.wait()).output == "done\n"


async def test_a_full_disk_ends_a_background_command_with_a_clear_word(tmp_path: Path) -> None:
    command = await KeeperShell().start(
        request(tmp_path, "until [ -e go ]; do sleep 0.01; done; yes", output_file=Path("/dev/full"))
    )
    assert await command.hand_over(Path("/dev/full"))
    (tmp_path / "go").touch()
    with pytest.raises(ToolError, match="No space left"):
        await command.wait()
    assert reap(f"test/{tmp_path}/") == 0


async def test_death_of_the_keeper_of_a_background_command_is_told_and_nothing_survives(tmp_path: Path) -> None:
    command = await KeeperShell().start(request(tmp_path, f"echo $PPID >keeper; {ESCAPE}; sleep 1000"))
    assert await command.hand_over(tmp_path / "task")
    await until(lambda: len(pids_in(tmp_path)) == 2)
    os.kill(int((tmp_path / "keeper").read_text()), signal.SIGKILL)
    with pytest.raises(ToolError, match="keeper was killed"):
        await command.wait()
    assert not any(alive(pid) for pid in pids_in(tmp_path))


PARENT = """
    import asyncio, os, sys
    from pathlib import Path
    from retinue.tools.ports import ShellRequest
    from retinue.tools.shell.runner import KeeperShell

    async def main(folder):
        request = ShellRequest(
            command=(folder / "command").read_text(), cwd=folder, env={"PATH": os.environ["PATH"]}, timeout_s=600,
            output_file=folder / "output", tag=f"test/{folder}/",
        )
        command = await KeeperShell().start(request)
        assert await command.hand_over(folder / "task")
        (folder / "handed over").touch()
        await command.wait()

    asyncio.run(main(Path(sys.argv[1])))
"""


async def test_death_of_the_agent_s_process_kills_what_it_has_in_the_background(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.05; done"
    (tmp_path / "command").write_text(f"{ESCAPE}; {stubborn}")
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path)])
    await until(lambda: len(pids_in(tmp_path)) == 3 and (tmp_path / "handed over").exists())
    parent.kill()
    parent.wait()
    await until(lambda: not any(alive(pid) for pid in pids_in(tmp_path)))
    assert reap(f"test/{tmp_path}/") == 0
