"""What must work inside of a sandbox: the work, and the shell's ways of telling how it went."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox import ground
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.probe import probe, refusal
from retinue.tools.shell.sandbox.result import Mechanism, Probe
from support.sandbox_scene import PATH, Scene, scene

MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock")


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Probe:
    found = probe(request.param)
    assert found.mechanism == request.param, found.why
    return found


@pytest.fixture(scope="module")
def bubblewrap() -> Probe:
    return probe("bubblewrap")


@pytest.fixture
def place() -> Iterator[Scene]:
    with scene(Path("/tmp")) as made:
        yield made


def request_for(policy: SandboxPolicy, command: str, cwd: Path, **env: str) -> ShellRequest:
    return ShellRequest(
        command=command,
        cwd=cwd,
        env={"PATH": PATH, "HOME": str(policy.scratch), "TMPDIR": str(policy.scratch), **env},
        timeout_s=30.0,
        output_file=policy.scratch.with_name("output"),
    )


async def run(policy: SandboxPolicy, found: Probe, command: str, cwd: Path, **env: str) -> ShellOutcome:
    return await KeeperShell(confinement=confinement(policy, found)).run(request_for(policy, command, cwd, **env))


async def test_a_command_that_is_called_off_may_tidy_up_before_it_ends(mechanism: Probe, place: Scene) -> None:
    policy = place.policy()
    (place.work / "src").mkdir()
    command = "cd src; trap 'echo tidy >tidied; exit' TERM; echo ready; while :; do sleep 0.05; done"
    ready = asyncio.Event()
    running = await KeeperShell(confinement=confinement(policy, mechanism)).start(
        request_for(policy, command, place.work), lambda _: ready.set()
    )
    await asyncio.wait_for(ready.wait(), 20)
    await running.stop()
    assert (place.work / "src/tidied").read_text() == "tidy\n"


async def test_keys_of_the_users_session_stay_outside(mechanism: Probe, place: Scene) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = {"x86_64": (250, 248, 249), "aarch64": (219, 217, 218)}
    keyctl, add_key, request_key = numbers[os.uname().machine]
    assert libc.syscall(keyctl, 1, None) > 0, "a session keyring of the test's own"
    assert libc.syscall(add_key, b"user", b"retinue-test", b"secret", 6, -3) > 0
    look = f"import ctypes; print(ctypes.CDLL(None).syscall({request_key}, b'user', b'retinue-test', None, 0) > 0)"
    python = os.path.realpath(sys.executable)  # an environment of its own may lie where no confined command looks
    bare = subprocess.run([python, "-I", "-S", "-c", look], capture_output=True, text=True, check=True)
    assert bare.stdout == "True\n"
    assert (await place.run(f'{python} -I -S -c "{look}"', mechanism)).output == "False\n"


async def test_files_are_made_changed_and_removed_in_the_workspace(mechanism: Probe, place: Scene) -> None:
    (place.work / "src").mkdir()
    (place.work / "src/old").touch()
    outcome = await place.run(
        "cd src && mkdir -p a/b && echo x > a/b/c && mv a z && cat z/b/c && rm old && ls", mechanism
    )
    assert outcome.output.split() == ["x", "z"]
    assert (place.work / "src/z/b/c").read_text() == "x\n"


async def test_bubblewrap_lets_all_be_made_beside_what_is_protected(bubblewrap: Probe, place: Scene) -> None:
    outcome = await place.run("echo x > new && mv new newer && rm own && ls -A", bubblewrap)
    assert "newer" in outcome.output.split()
    assert not (place.work / "own").exists()


async def test_landlock_lets_a_file_beside_what_is_protected_be_written_in_its_place(place: Scene) -> None:
    outcome = await place.run("echo x > own; echo x > new", probe("landlock"))
    assert "new: Permission denied" in outcome.output
    assert (place.work / "own").read_text() == "x\n"


async def test_what_is_protected_and_what_is_outside_can_be_read(mechanism: Probe, place: Scene) -> None:
    outcome = await place.run(f"cat .mcp.json .retinue/settings {place.outside}/file /etc/passwd", mechanism)
    assert outcome.output.startswith("{}\nours\noriginal\nroot:")


async def test_the_temp_folder_is_kept_from_command_to_command(mechanism: Probe, place: Scene) -> None:
    await place.run('echo kept > "$TMPDIR/file"', mechanism)
    assert (await place.run('cat "$TMPDIR/file"', mechanism)).output == "kept\n"


async def test_tmp_is_the_temp_folder_where_nothing_else_lies_below_it(bubblewrap: Probe, tmp_path: Path) -> None:
    home = Path.home() / f".retinue-test-{tmp_path.name}"
    try:
        for name in ("work", "scratch"):
            (home / name).mkdir(parents=True)
        policy = SandboxPolicy(writable=(home / "work",), scratch=home / "scratch")
        await run(policy, bubblewrap, "echo kept > /tmp/file", home / "work")
        assert (await run(policy, bubblewrap, "cat /tmp/file; ls -A /run /var/tmp", home / "work")).output == (
            "kept\n/run:\n\n/var/tmp:\n"
        )
        assert (home / "scratch/file").read_text() == "kept\n"
    finally:
        shutil.rmtree(home)


async def test_an_exit_code_comes_through(mechanism: Probe, place: Scene) -> None:
    assert (await place.run("exit 7", mechanism)).exit_code == 7
    assert (await place.run("nonsense-command", mechanism)).exit_code == 127
    assert (await place.run("sub", mechanism)).exit_code == 127


async def test_a_signal_comes_through(mechanism: Probe, place: Scene) -> None:
    """Bubblewrap tells it as a shell does, Landlock as the kernel does."""
    expected = 128 + 9 if mechanism.mechanism == "bubblewrap" else -9
    outcome = await place.run("kill -9 $$", mechanism)
    assert (outcome.exit_code, outcome.output) == (expected, "")
    assert (await place.run("sh -c 'kill -15 $$'", mechanism)).exit_code in (128 + 15, -15)


async def test_the_end_directory_is_known(mechanism: Probe, place: Scene) -> None:
    assert (await place.run("cd sub", mechanism)).cwd == place.work / "sub"
    assert (await place.run("cd sub; exit 3", mechanism)).cwd == place.work / "sub"
    assert not [path for path in place.scratch.iterdir() if path.suffix == ".cwd"]


async def test_both_streams_come_in_order(mechanism: Probe, place: Scene) -> None:
    outcome = await place.run("for n in 1 2 3; do echo out $n; echo err $n >&2; done", mechanism)
    assert outcome.output.split("\n")[:-1] == [f"{stream} {n}" for n in (1, 2, 3) for stream in ("out", "err")]


async def test_what_a_command_leaves_to_a_reader_still_comes(mechanism: Probe, place: Scene) -> None:
    assert (await place.run("echo late > >(sleep 0.05; cat)", mechanism)).output == "late\n"


async def test_standard_devices_and_pipes_work(mechanism: Probe, place: Scene) -> None:
    outcome = await place.run(
        "head -c 3 /dev/urandom | wc -c; : >/dev/null; echo a | cat /dev/stdin; cat </dev/zero | head -c 1 | wc -c",
        mechanism,
    )
    assert outcome.output.split() == ["3", "a", "1"]


async def test_python_runs_with_processes_and_threads(mechanism: Probe, place: Scene) -> None:
    command = (
        '"$PY" -c "import subprocess, concurrent.futures as f; p = f.ThreadPoolExecutor();'
        " print(p.submit(subprocess.check_output, ['echo', 'up'], text=True).result())\""
    )
    assert (await place.run(command, mechanism)).output.strip() == "up"


async def test_the_sandboxs_own_loopback_works(bubblewrap: Probe, place: Scene) -> None:
    command = (
        '"$PY" -c "import socket as k; s = k.create_server((\'\', 0)); c = k.create_connection(s.getsockname());'
        " c.sendall(b'up'); print(s.accept()[0].recv(9))\""
    )
    assert (await place.run(command, bubblewrap)).output == "b'up'\n"


async def test_with_the_whole_network_the_loopback_of_the_machine_is_there(mechanism: Probe, place: Scene) -> None:
    command = f"exec 9<>/dev/tcp/127.0.0.1/{place.server.getsockname()[1]}"
    assert place.harm(await place.run(command, mechanism, network="full")) == {"network"}
    assert (await place.run("ls sub", mechanism, network="full")).exit_code == 0


async def test_a_deeper_entry_wins(mechanism: Probe, place: Scene) -> None:
    """State is hidden, a worktree in it writable, a folder of that protected, and a file beside it readable."""
    state = place.root / "state"
    for name in ("wt/a/.claude", "wt/b", "depot", "keys"):
        (state / name).mkdir(parents=True)
    (state / "keys/control").write_text("power")
    (state / "gitconfig").write_text("[user]\n")
    (state / "wt/b/file").write_text("other")
    policy = SandboxPolicy(
        writable=(state / "wt/a",),
        scratch=place.scratch,
        readable=(state / "gitconfig", state / "depot"),
        protected=(state / "wt/a/.claude",),
        hidden=(state,),
    )
    command = (
        f"cat {state}/gitconfig {state}/keys/control {state}/wt/b/file; ls {state}/depot; cat ../b/file;"
        f" echo x > .claude/x; touch {state}/depot/x; touch {state}/new; echo done"
    )
    outcome = await run(policy, mechanism, command, state / "wt/a")
    assert outcome.output.startswith("[user]\n")
    assert outcome.output.endswith("done\n")
    assert "power" not in outcome.output
    assert "other" not in outcome.output
    assert sorted(path.name for path in state.rglob("*") if path.is_file()) == ["control", "file", "gitconfig"]


IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@x")


def git(*words: object, cwd: Path) -> str:
    env = {"PATH": PATH, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(cwd)}
    return subprocess.run(
        ["git", *map(str, words)], cwd=cwd, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


async def test_an_agent_commits_and_moves_no_other_ref(mechanism: Probe, place: Scene) -> None:
    """In the arrangement of a run: a Depot to read, a repository of its own, a worktree of that.

    The folders of objects are made beforehand: Landlock lets none be made beside a protected one.
    """
    state = place.root / "state"
    state.mkdir()
    depot, own, work = state / "depot.git", state / "agents/a.git", state / "wt/a"
    git("init", "-q", "--bare", "--template=", depot, cwd=state)
    git("init", "-q", "--bare", "--template=", own, cwd=state)
    base = git(*IDENTITY, "commit-tree", git("mktree", cwd=depot), "-m", "base", cwd=depot)
    git("update-ref", "refs/heads/tip", base, cwd=depot)
    (own / "objects/info").mkdir(exist_ok=True)
    (own / "objects/info/alternates").write_text(f"{depot}/objects\n")
    for folder in ("hooks", "info", "logs", "worktrees", *(f"objects/{number:02x}" for number in range(256))):
        (own / folder).mkdir(exist_ok=True)
    git("worktree", "add", "-q", "-b", "work", work, base, cwd=own)
    policy = SandboxPolicy(
        writable=(work, own),
        scratch=place.scratch,
        readable=(depot,),
        protected=(
            own / "config",
            own / "hooks",
            own / "info",
            own / "objects/info/alternates",
            work / ".git",
            work / ".claude",
        ),
        hidden=(state,),
    )
    (work / "src").mkdir()
    commands = (
        f"echo x > src/file && git add src/file && git {' '.join(IDENTITY)} commit -q -m work && git log --oneline",
        f"git -C {depot} update-ref refs/heads/tip HEAD",
        f"git config core.hooksPath /x; echo x > {own}/hooks/post-commit; mv {own}/objects/info {own}/objects/old",
        "git status --short",
    )
    outcome = await run(policy, mechanism, "; ".join(commands), work, GIT_CONFIG_GLOBAL="/dev/null")
    assert [line.split()[1] for line in outcome.output.splitlines()[:2]] == ["work", "base"]
    assert "??" not in outcome.output
    assert git("rev-parse", "refs/heads/tip", cwd=depot) == base
    assert git("log", "--format=%s", "work", cwd=own).splitlines() == ["work", "base"]
    assert not (own / "hooks/post-commit").exists()
    assert (own / "objects/info/alternates").exists()
    assert "hooksPath" not in (own / "config").read_text()


async def test_paths_that_are_absent_need_nothing(mechanism: Probe, place: Scene) -> None:
    policy = replace(
        place.policy(),
        readable=(place.root / "none", place.work / "none"),
        hidden=(Path("/root/.none"), place.root / "none/deep", place.secret),
        writable=(place.work, place.root / "absent"),
        protected=(),
    )
    assert (await run(policy, mechanism, "echo up", place.work)).output == "up\n"
    assert not (place.work / "none").exists()


async def test_without_a_temp_folder_nothing_runs(mechanism: Probe, place: Scene) -> None:
    policy = replace(place.policy(), scratch=place.root / "none")
    with pytest.raises(EnvironmentProblem, match="temp folder"):
        await run(policy, mechanism, "echo up", place.work)


def test_the_probe_finds_the_strictest_form_and_says_what_is_open() -> None:
    found = probe()
    assert (found.mechanism, found.form) == ("bubblewrap", "no further namespaces")
    assert found.version.startswith("bubblewrap 0.")
    assert Probe.model_validate(found.model_dump()) == found
    assert found.gaps


def test_a_mechanism_that_does_not_start_is_found_out(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    program.chmod(0o755)
    found = Probe(mechanism="bubblewrap", program=str(program), form="no user namespace")
    assert refusal(found, 10.0) == "it does not start a command: no namespaces here."


def test_a_mechanism_that_confines_nothing_is_found_out(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    found = Probe(mechanism="bubblewrap", program=str(program), form="no user namespace")
    assert refusal(found, 10.0) == "a confined command could write outside of its folders."


def test_a_mechanism_that_hangs_is_given_up(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    found = Probe(mechanism="bubblewrap", program=str(program), form="no user namespace")
    assert refusal(found, 0.2) == "a trivial command did not end within 0.2 s."


def test_without_bubblewrap_the_probe_takes_landlock_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    found = probe()
    assert found.mechanism == "landlock"
    assert found.why == ("bubblewrap: no `bwrap` on the PATH; install the package bubblewrap.",)
    assert found.limits


@pytest.fixture
def without_rights() -> Iterator[None]:
    """As somebody who is not root, for the length of a test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("without_rights")
def test_what_lies_in_a_folder_of_somebody_else_counts_as_absent() -> None:
    path = Path("/proc/1/fd/0/deeper")
    found = ground.look((path, *path.parents))
    assert (found[path.parent], found[path]) == ("absent", "absent")


@pytest.mark.usefixtures("without_rights")
def test_what_lies_in_a_shut_folder_of_ones_own_cannot_be_held() -> None:
    own = Path(f"/var/tmp/retinue-shut-{os.getpid()}")
    own.mkdir()
    try:
        own.chmod(0)
        with pytest.raises(EnvironmentProblem, match=f"cannot look at {own}/key"):
            ground.look((own, own / "key"))
    finally:
        own.rmdir()
