"""The command line as a process: on a terminal, in a pipe, interrupted, and quick to answer."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.orchestrator.ledger.lock import RunLock
from retinue.orchestrator.state.paths import StateDir
from support.past_runs import MONEY, PastRun, shop_done

RETINUE = (sys.executable, "-m", "retinue")
COLOUR = re.compile(rb"\x1b\[[0-9;]*3[0-7][0-9;]*m")
STYLE = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


def environment(state: StateDir, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(state.root), "LANG": "C.UTF-8", "TERM": "xterm-256color", **more}


def piped(state: StateDir, *args: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    command = [*RETINUE, *args, "--state-dir", str(state.root)]
    return subprocess.run(command, env=environment(state, **more), capture_output=True, timeout=60, check=False)


def on_terminal(state: StateDir, *args: str, columns: int = 80, **more: str) -> bytes:
    """All that a terminal of this width is told."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [*RETINUE, *args, "--state-dir", str(state.root)]
    process = subprocess.Popen(command, env=environment(state, **more), stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while chunk := _read(master):
            seen += chunk
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    return seen


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65_536)
    except OSError:  # the other end is closed
        return b""


def test_a_terminal_gets_colours_unless_no_color_is_set(state: StateDir) -> None:
    shop_done(state)
    assert COLOUR.search(on_terminal(state, "status", "shop"))
    assert not COLOUR.search(on_terminal(state, "status", "shop", NO_COLOR="1"))


def test_a_pipe_gets_plain_text_and_hints_go_to_stderr(state: StateDir) -> None:
    shop_done(state)
    for args in (("status", "shop"), ("ps",), ("tasks", "shop"), ("logs", "shop")):
        done = piped(state, *args)
        assert done.returncode == 0
        assert b"\x1b" not in done.stdout + done.stderr
        assert b"retinue diff" not in done.stdout
        assert not any(line.endswith(b" ") for line in done.stdout.splitlines())


def test_a_narrow_terminal_is_not_overrun(state: StateDir) -> None:
    shop_done(state)
    seen = STYLE.sub(b"", on_terminal(state, "tasks", "shop", columns=60)).decode()
    assert "Prices" in seen
    assert max(map(len, seen.splitlines())) <= 60


@pytest.mark.parametrize("command", ["ps", "status", "tasks", "logs"])
def test_a_terminal_obeys_nothing_that_agents_wrote(state: StateDir, command: str) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b5mblink\u202eflip"
    task = MONEY.model_copy(update={"subject": hostile, "owner": hostile, "note": hostile, "status": "failed"})
    past = PastRun.make(state, "shop").begin("ada", tasks=(task,)).turn("ada", hostile, title=hostile)
    past.mail("ada", "ada", hostile).phase("failed", hostile).close()
    seen = on_terminal(state, command, *(() if command == "ps" else ("shop",)), columns=200)
    assert seen
    left = STYLE.sub(b"", seen).decode()
    assert not any(c in left for c in "\x1b\x07\x9b\u202e")


def test_errors_go_to_stderr_and_the_exit_code_says_whose_they_are(state: StateDir) -> None:
    done = piped(state, "status", "nope")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"retinue: no run 'nope'")
    unusable = subprocess.run([*RETINUE, "ps"], env={"PATH": os.environ["PATH"]}, capture_output=True, check=False)
    assert (unusable.returncode, unusable.stdout) == (3, b"")
    assert b"--state-dir" in unusable.stderr


@pytest.mark.parametrize("args", [("logs", "shop"), ("logs", "shop", "--json"), ("schema",), ("--help",)])
def test_a_reader_that_leaves_is_no_error_for_a_person(state: StateDir, args: tuple[str, ...]) -> None:
    past = PastRun.make(state, "shop").begin("ada")
    for _ in range(300):
        past.turn("ada", "word " * 50)
    past.phase("done").close()
    more = ["--state-dir", str(state.root)] if "shop" in args else []
    reading, writing = os.pipe()
    process = subprocess.Popen([*RETINUE, *args, *more], env=environment(state), stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=60)
    assert err == b""
    assert process.returncode == 141


def test_following_ends_when_the_run_is_over(state: StateDir) -> None:
    past = PastRun.make(state, "shop").begin("ada")
    with RunLock.acquire(past.dir.lock), following(state) as process:
        assert b"starts" in first_line(process, b"starts")
        past.turn("ada", "a late word")
        assert b"a late word" in first_line(process, b"says")
        past.phase("done").close()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.splitlines()[-1].endswith(b"run done")
    assert err == b""


def test_ctrl_c_ends_following_with_130_and_without_a_traceback(state: StateDir) -> None:
    past = PastRun.make(state, "shop").begin("ada")
    with RunLock.acquire(past.dir.lock), following(state) as process:
        first_line(process, b"starts")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    past.close()
    assert process.returncode == 130
    assert b"Traceback" not in err


def following(state: StateDir) -> subprocess.Popen[bytes]:
    command = [*RETINUE, "logs", "shop", "-f", "--state-dir", str(state.root)]
    return subprocess.Popen(command, env=environment(state), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def first_line(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    """The next line with this word; the test's own time-out ends waiting for one that never comes."""
    assert process.stdout is not None
    return next(line for line in process.stdout if word in line)


HEAVY = ("ray", "anthropic", "mcp", "git", "libtmux", "rich", "httpx2", "ruamel", "retinue.orchestrator.actors")


@pytest.mark.parametrize("args", [[], ["--help"], ["up", "--help"], ["status", "--help"], ["--version"]])
def test_help_loads_nothing_that_only_commands_need(args: list[str]) -> None:
    code = f"import sys; from retinue.orchestrator.cli.main import main; main({args!r}); print('|'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split("|")
    assert "typer" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_a_list_of_runs_needs_neither_ray_nor_a_model_client(state: StateDir) -> None:
    shop_done(state)
    code = (
        "import sys; from retinue.orchestrator.cli.main import main; "
        f"main(['status', 'shop', '--state-dir', {str(state.root)!r}]); print('|'.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split("|")
    assert not [name for name in ("ray", "anthropic", "mcp") if name in loaded]


def test_the_doctor_judges_this_machine(state: StateDir) -> None:
    done = piped(state, "doctor", "--json")
    found = json.loads(done.stdout)
    assert {"Python", "Ray", "git", "state folder"} <= {check["name"] for check in found["checks"] if check["ok"]}
    assert done.returncode == (0 if found["ok"] else 3)
    assert done.stderr == b""


def test_a_script_is_served_until_ctrl_c(state: StateDir, tmp_path: Path) -> None:
    script = tmp_path / "play.yaml"
    script.write_text("agents:\n  '*':\n    - say: hello\n")
    command = [*RETINUE, "model", "serve", str(script)]
    process = subprocess.Popen(command, env=environment(state), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        assert re.search(rb"play.yaml at http://127.0.0.1:\d+", first_line(process, b"serving"))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_a_script_that_is_wrong_is_not_served(state: StateDir, tmp_path: Path) -> None:
    done = subprocess.run(
        [*RETINUE, "model", "serve", str(tmp_path / "none.yaml")],
        env=environment(state),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"no such script" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_completion_script(state: StateDir, shell: str) -> None:
    more: dict[str, str] = {"_RETINUE_COMPLETE": f"source_{shell}"}
    done = subprocess.run(RETINUE, env=environment(state, **more), capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "retinue" in done.stdout


def test_the_shell_completes_commands_and_ids_of_runs(state: StateDir) -> None:
    shop_done(state, "shop-one")
    shop_done(state, "shop-two")

    def completed(words: str) -> list[JsonValue]:
        env = environment(
            state, _RETINUE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split(" ")) - 1)
        )
        env["XDG_STATE_HOME"] = str(state.root.parent)
        done = subprocess.run(RETINUE, env=env, capture_output=True, text=True, check=False)
        return [*done.stdout.split()]

    (state.root.parent / "retinue").symlink_to(state.root)
    assert "status" in completed("retinue sta")
    assert completed("retinue status shop-t") == ["shop-two"]
