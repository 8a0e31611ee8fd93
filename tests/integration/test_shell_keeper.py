"""The keeper: nothing of a command survives it, and its locks are held exactly as long."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.reap import reap
from retinue.tools.shell.runner import KeeperShell

PATH = "/usr/local/bin:/usr/bin:/bin"
ESCAPE = "(setsid bash -c 'echo $$ >>pids; sleep 1000 & echo $! >>pids; wait' >/dev/null 2>&1 </dev/null &)"


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


async def run(folder: Path, command: str, **more: object) -> ShellOutcome:
    return await KeeperShell().run(request(folder, command, **more))


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


async def test_both_streams_arrive_in_the_order_of_their_writing(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "echo one; echo two >&2; echo three; echo four >/dev/stderr; exit 3")
    assert outcome.output == "one\ntwo\nthree\nfour\n"
    assert (outcome.exit_code, outcome.output_bytes, outcome.truncated, outcome.killed) == (3, 19, False, 0)


async def test_the_command_sees_exactly_the_given_environment_and_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setenv("BASH_ENV", "/nonexistent")
    outcome = await run(tmp_path, "env", env={"PATH": PATH, "A": "b c\nd"}, tag="run/1")
    by_bash = {f"PWD={tmp_path}", "SHLVL=0", "OLDPWD", "_=/usr/bin/env"}
    assert set(outcome.output.splitlines()) - by_bash == {f"PATH={PATH}", "A=b c", "d", "RETINUE_CALL=run/1"}


async def test_locks_and_pipes_of_the_keeper_are_not_visible_to_the_command(tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    outcome = await run(tmp_path, "for fd in /proc/self/fd/*; do readlink $fd; done; true", keep_fds=(lock,))
    os.close(lock)
    kinds = {line.partition(":")[0] for line in outcome.output.splitlines()}
    assert kinds <= {"/dev/null", "pipe"} | {line for line in outcome.output.splitlines() if "/proc/" in line}
    assert "lock" not in outcome.output


async def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cat; echo end")).output == "end\n"


async def test_the_command_starts_with_default_signals(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "grep -E 'SigBlk|SigIgn' /proc/self/status; yes | head -1")
    _, blocked, _, ignored, said = outcome.output.split()
    libc_s_own = 0b11 << 31  # 32 and 33: no program can set them, and who started us may have them ignored
    assert (int(blocked, 16), int(ignored, 16) & ~libc_s_own, said) == (0, 0, "y")
    assert outcome.exit_code == 0


async def test_the_text_of_a_command_is_run_as_it_is(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "echo \"$0 $# $BASH_EXECUTION_STRING\" 'it''s' # end")
    assert outcome.output.startswith('bash 0 echo "$0')
    assert (await run(tmp_path, "-not-an-option")).output.startswith("bash: line 1: -not-an-option")


async def test_the_directory_where_a_command_ended_is_told(tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s a "folder"'
    odd.mkdir()
    assert (await run(tmp_path, "cd it*; false")).cwd == odd
    assert (await run(odd, "cd ..; pwd", output_file=odd / "output")).cwd == tmp_path
    assert (await run(tmp_path, "true")).cwd is None
    assert sorted(p.name for p in tmp_path.iterdir()) == [odd.name, "output"]


async def test_the_exit_code_is_that_of_the_command_even_when_its_directory_is_asked_for(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cd / && exit 7")).exit_code == 7
    assert (await run(tmp_path, "cd / && kill -9 $$")).exit_code == -9


async def test_a_timeout_kills_the_tree_with_children_that_left_the_session(tmp_path: Path) -> None:
    outcome = await run(tmp_path, f"{ESCAPE}; {ESCAPE}; sleep 1000", timeout_s=1.0)
    assert outcome.timed_out
    assert outcome.exit_code == -signal.SIGTERM
    assert len(pids_in(tmp_path)) == 4
    assert not any(alive(pid) for pid in pids_in(tmp_path))


async def test_what_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "trap '' TERM; echo $$ >pids; while :; do sleep 1; done", timeout_s=0.3)
    assert outcome.timed_out
    assert outcome.exit_code == -signal.SIGKILL
    assert not any(alive(pid) for pid in pids_in(tmp_path))


async def test_what_is_left_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    outcome = await run(tmp_path, f"{ESCAPE}; until [ -e pids ]; do :; done; echo done")
    assert outcome.output == "done\n"
    assert outcome.exit_code == 0
    assert outcome.killed >= 1
    assert not any(alive(pid) for pid in pids_in(tmp_path))


async def test_output_of_a_process_that_is_just_finishing_is_not_lost(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "echo late > >(sleep 0.05; cat)")
    assert (outcome.output, outcome.killed) == ("late\n", 0)


async def test_cancellation_returns_when_the_tree_is_gone(tmp_path: Path) -> None:
    task = asyncio.create_task(run(tmp_path, f"{ESCAPE}; echo $$ >>pids; sleep 1000"))
    await until(lambda: len(pids_in(tmp_path)) == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(alive(pid) for pid in pids_in(tmp_path))


async def test_cancellation_at_once_leaves_nothing(tmp_path: Path) -> None:
    for passes in range(6):
        task = asyncio.create_task(run(tmp_path, "echo $$ >>pids; sleep 1000"))
        for _ in range(passes):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not any(alive(pid) for pid in pids_in(tmp_path))
    assert reap(f"test/{tmp_path}/") == 0


PARENT = """
    import asyncio, fcntl, os, sys
    from pathlib import Path
    from retinue.tools.ports import ShellRequest
    from retinue.tools.shell.runner import KeeperShell

    folder = Path(sys.argv[1])
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    request = ShellRequest(
        command=(folder / "command").read_text(), cwd=folder, env={"PATH": os.environ["PATH"]}, timeout_s=600,
        output_file=folder / "output", keep_fds=(lock,), tag=f"test/{folder}/",
    )
    asyncio.run(KeeperShell().run(request))
"""


def start_parent(folder: Path, command: str) -> subprocess.Popen[bytes]:
    (folder / "command").write_text(command)
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT), str(folder)])


def locked(folder: Path) -> bool:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def test_death_of_the_parent_kills_the_tree_and_only_then_frees_the_lock(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.05; done"
    parent = start_parent(tmp_path, f"{ESCAPE}; {stubborn}")
    await until(lambda: len(pids_in(tmp_path)) == 3)
    parent.kill()
    parent.wait()
    seen_locked_without_parent = False
    while locked(tmp_path):
        seen_locked_without_parent = True
        await asyncio.sleep(0.005)
    assert seen_locked_without_parent
    assert not any(alive(pid) for pid in pids_in(tmp_path))


def keeper_of(pid: int) -> int:
    """The parent of the command's own process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_death_of_the_keeper_kills_the_command_and_the_rest_is_reaped(tmp_path: Path) -> None:
    task = asyncio.create_task(run(tmp_path, f"echo $$ >own; {ESCAPE}; sleep 1000"))
    await until(lambda: len(pids_in(tmp_path)) == 2)
    own = int((tmp_path / "own").read_text())
    os.kill(keeper_of(own), signal.SIGKILL)
    with pytest.raises(ToolError, match="keeper was killed"):
        await task
    assert not any(alive(pid) for pid in [own, *pids_in(tmp_path)])


async def test_reap_finds_by_prefix_what_a_killed_keeper_and_its_parent_left(tmp_path: Path) -> None:
    parent = start_parent(tmp_path, f"echo $$ >own; {ESCAPE}; sleep 1000")
    await until(lambda: len(pids_in(tmp_path)) == 2)
    own = int((tmp_path / "own").read_text())
    keeper = keeper_of(own)
    os.kill(parent.pid, signal.SIGSTOP)
    os.kill(keeper, signal.SIGKILL)
    parent.kill()
    parent.wait()
    await until(lambda: not alive(own))
    assert all(alive(pid) for pid in pids_in(tmp_path))
    assert reap(f"another/{tmp_path}") == 0
    assert reap(f"test/{tmp_path}/") == 2
    assert not any(alive(pid) for pid in pids_in(tmp_path))


def test_reap_refuses_an_empty_prefix() -> None:
    with pytest.raises(ValueError, match="every run"):
        reap("")


async def test_a_megabyte_a_second_flows_as_progress_and_is_cut_in_the_middle(tmp_path: Path) -> None:
    line = "x" * 99
    pieces: list[str] = []
    command = f"for i in $(seq 10); do yes {line} | head -n 1000; sleep 0.1; done; echo the end"
    outcome = await KeeperShell().run(request(tmp_path, command), pieces.append, max_chars=2_000)
    assert outcome.output_bytes == 1_000_008
    assert outcome.truncated
    assert outcome.output.startswith(line)
    assert outcome.output.endswith("the end\n")
    assert "1,000,008 bytes" in outcome.output
    assert len(outcome.output) < 2_100
    assert len(pieces) >= 3
    assert set("".join(pieces)) <= set("x\nthe end")


async def test_too_much_output_ends_the_command_with_a_note_and_a_bounded_file(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "yes", max_file_bytes=100_000)
    assert outcome.exit_code < 0
    assert not outcome.timed_out
    assert outcome.output_bytes == (tmp_path / "output").stat().st_size == 100_000
    assert "[stopped: more than 100,000 bytes of output]" in outcome.output


async def test_binary_output_and_colours_become_plain_text(tmp_path: Path) -> None:
    outcome = await run(tmp_path, r"printf 'a\0b\377\033[31mred\033[0m\r\nend\007\n'")
    assert outcome.output == "a␀b�red\nend␇\n"


async def test_output_that_cannot_be_stored_is_an_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="could not be started"):
        await run(tmp_path, "echo $$ >pids", output_file=tmp_path / "missing" / "output")
    with pytest.raises(ToolError, match="No space left"):
        await run(tmp_path, "yes", output_file=Path("/dev/full"))


async def test_a_directory_that_is_gone_is_told_in_the_output(tmp_path: Path) -> None:
    outcome = await run(tmp_path, "true", cwd=tmp_path / "gone")
    assert outcome.exit_code == 126
    assert "could not be started" in outcome.output


async def test_a_chain_of_ever_new_processes_is_caught(tmp_path: Path) -> None:
    """At most two of the chain live at once, and it ends by itself: the test is no danger to the machine."""
    chain = "trap '' TERM; f() { [ $1 -gt 0 ] || return; echo >>links; sleep 0.01; (f $(($1 - 1))) & }; f 300; sleep 60"
    outcome = await run(tmp_path, chain, timeout_s=0.3)
    assert outcome.timed_out
    assert reap(f"test/{tmp_path}/") == 0
    links = (tmp_path / "links").stat().st_size
    assert 1 < links < 300
    await asyncio.sleep(0.1)
    assert (tmp_path / "links").stat().st_size == links


async def test_waiting_for_a_silent_command_costs_no_processor_time(tmp_path: Path) -> None:
    await run(tmp_path, "exec >/dev/null 2>&1; sleep 0.5; cp /proc/$PPID/stat stat")
    fields = (tmp_path / "stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    assert ticks / os.sysconf("SC_CLK_TCK") < 0.2


async def test_many_runs_leave_no_zombie_and_no_descriptor(tmp_path: Path) -> None:
    await run(tmp_path, "true")
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(10):
        await asyncio.gather(
            *(run(tmp_path, "sleep 0.01 & true", output_file=tmp_path / f"output{n}") for n in range(5))
        )
    await until(lambda: set(os.listdir("/proc/self/fd")) == before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


async def test_the_keeper_costs_a_bounded_time(tmp_path: Path) -> None:
    async def bare() -> None:
        process = await asyncio.create_subprocess_exec("/bin/bash", "--noprofile", "--norc", "-c", "true")
        await process.wait()

    async def kept() -> None:
        await run(tmp_path, "true")

    async def median(once: Callable[[], object], count: int = 15) -> float:
        times: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            await once()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    await kept()
    overhead = await median(kept) - await median(bare)
    assert overhead < 0.1
