"""What a confined process is, beyond what it does to one victim: no power over the machine, and nothing left of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from retinue.tools.errors import EnvironmentProblem, ToolError
from retinue.tools.shell.sandbox import ground
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Mechanism, Probe
from support.sandbox_attacks import python
from support.sandbox_scene import Scene, scene

MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock")
ROOT = os.geteuid() == 0
OPENS = python(
    "import os, sys\n"
    "for path in sys.argv[1:]:\n"
    "    try: os.open(path, os.O_{mode}); print(path)\n"
    "    except OSError: pass\n"
)


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Probe:
    found = probe(request.param)
    assert found.mechanism == request.param, found.why
    return found


@pytest.fixture(scope="module")
def bubblewrap() -> Probe:
    return probe("bubblewrap")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Scene]:
    with scene(Path("/tmp")) as made:
        yield made


def opens(mode: str, *paths: object) -> str:
    return f"{OPENS.replace('{mode}', mode)} {' '.join(str(path) for path in paths)}"


def running(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or [])]


async def gone(mark: str) -> bool:
    """Within a second: what is killed takes a moment to be taken away by whoever inherits it."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, running(mark), timeout=1)
    return not alive


def signal_pipe(place: Scene) -> Path:
    """Reading it waits for the command to write to it."""
    path = place.work / "free/up"
    os.mkfifo(path)
    return path


async def test_a_confined_process_has_no_capability_and_can_get_none(mechanism: Probe, place: Scene) -> None:
    command = "grep -E '^(Cap...|NoNewPrivs):' /proc/self/status"
    confined = dict(line.split() for line in (await place.run(command, mechanism)).output.splitlines())
    bare = dict(line.split() for line in (await place.run(command, None)).output.splitlines())
    found = {name: int(value, 16) for name, value in confined.items()}
    assert found["NoNewPrivs:"] == 1
    assert [found[f"Cap{name}:"] for name in ("Inh", "Prm", "Eff", "Amb")] == [0, 0, 0, 0]
    # who is not root cannot empty the bounding set, and gains nothing by it without new privileges
    assert found["CapBnd:"] == 0 or (mechanism.mechanism == "landlock" and not ROOT)
    assert bare["NoNewPrivs:"] == "0"
    assert int(bare["CapEff:"], 16) > 0 or not ROOT


async def test_a_set_user_bit_gives_nothing(mechanism: Probe, place: Scene) -> None:
    program = place.work / "free/id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    os.chown(program, 65534 if ROOT else -1, -1)
    program.chmod(0o4755)
    own = str(os.geteuid())
    assert (await place.run("free/id -u", None)).output.strip() == ("65534" if ROOT else own)
    assert (await place.run("free/id -u", mechanism)).output.strip() == own


@pytest.mark.parametrize(
    ("mode", "paths"),
    [
        ("RDONLY", lambda: [Path("/dev") / disk.name for disk in Path("/sys/block").iterdir()]),
        ("RDONLY", lambda: ["/dev/mem", "/dev/kmsg", "/proc/kcore", "/proc/kmsg"]),
        ("WRONLY", lambda: [Path("/dev") / disk.name for disk in Path("/sys/block").iterdir()]),
        ("WRONLY", lambda: ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger"]),
        (
            "WRONLY",
            lambda: [*Path("/sys/kernel/mm").rglob("enabled"), *Path("/sys/fs/cgroup").rglob("cgroup.procs")],
        ),
        ("WRONLY", lambda: ["/etc/hosts", "/etc/passwd", Path.home() / ".profile"]),
    ],
)
async def test_the_machine_cannot_be_reached(
    mechanism: Probe, place: Scene, mode: str, paths: Callable[[], list[object]]
) -> None:
    command = opens(mode, *paths())
    assert (await place.run(command, None)).output.strip() or not ROOT
    assert (await place.run(command, mechanism)).output.strip() == ""


async def test_no_device_can_be_made(mechanism: Probe, place: Scene) -> None:
    command = "mknod free/device c 1 1"
    assert (await place.run(command, mechanism)).exit_code != 0
    assert not (place.work / "free/device").exists()
    assert (await place.run(command, None)).exit_code == 0 or not ROOT


async def test_a_device_that_is_there_cannot_be_opened(bubblewrap: Probe, place: Scene) -> None:
    if ROOT:
        os.mknod(place.work / "free/device", 0o020666, os.makedev(1, 5))
    assert (await place.run(opens("RDONLY", "free/device"), None)).output.strip() or not ROOT
    assert (await place.run(opens("RDONLY", "free/device"), bubblewrap)).output.strip() == ""


async def test_no_control_group_can_be_made(mechanism: Probe, place: Scene) -> None:
    groups = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()]
    made = [group / place.root.name for group in groups if group.is_dir()]
    command = f"mkdir {' '.join(map(str, made))}; sleep 0"
    await place.run(command, mechanism)
    assert not [group for group in made if group.exists()]
    await place.run(command, None)
    found = [group for group in made if group.exists()]
    for group in found:
        group.rmdir()
    assert found or not ROOT


async def test_the_keeper_is_out_of_sight(mechanism: Probe, place: Scene) -> None:
    """Its memory holds the whole request, and its descriptors the locks."""
    command = python(
        "import os\n"
        'for pid in filter(str.isdigit, os.listdir("/proc")):\n'
        "    try:\n"
        '        if b"import keeper" in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")[5]:\n'
        '            os.open(f"/proc/{pid}/mem", 0); print("memory"); print(os.listdir(f"/proc/{pid}/fd"))\n'
        "    except (OSError, IndexError): pass\n"
    )
    assert "memory" in (await place.run(command, None)).output or not ROOT
    assert (await place.run(command, mechanism)).output.strip() == ""


async def test_nothing_is_inherited_but_the_standard_streams(mechanism: Probe, place: Scene) -> None:
    with (place.secret / "key").open() as held:
        os.set_inheritable(held.fileno(), True)
        outcome = await place.run("echo /proc/self/fd/*", mechanism)
    assert outcome.output.split() == [f"/proc/self/fd/{number}" for number in range(4)]  # 3: the listing itself


async def test_signals_to_everybody_stay_inside(mechanism: Probe, place: Scene) -> None:
    """Guarded: unless one signal is seen to be refused, it is not sent to all."""
    guesses = " ".join(str(place.victim.pid + away) for away in range(-20, 21))
    outcome = await place.run(
        f"kill -9 {place.victim.pid} 2>/dev/null && exit 77; kill -9 {guesses} 2>/dev/null; kill -9 -1; kill -9 0",
        mechanism,
    )
    assert outcome.exit_code in (137, -9)
    assert place.victim.poll() is None


async def test_what_hides_in_a_session_of_its_own_ends_with_the_command(mechanism: Probe, place: Scene) -> None:
    mark = f"3{os.getpid()}.25"
    outcome = await place.run(
        f"env -i setsid -f /bin/sleep {mark}; env -i /bin/sleep {mark} & disown; echo up", mechanism
    )
    assert outcome.output.strip() == "up"
    assert await gone(mark)


async def test_many_processes_end_with_the_command(mechanism: Probe, place: Scene) -> None:
    mark = f"4{os.getpid()}.25"
    outcome = await place.run(f"for n in $(seq 50); do setsid sleep {mark} & done; jobs -p | wc -l", mechanism)
    assert int(outcome.output) == 50
    assert await gone(mark)


async def test_a_time_out_ends_all(mechanism: Probe, place: Scene) -> None:
    mark = f"5{os.getpid()}.25"
    outcome = await place.run(f"(setsid sleep {mark} &); trap '' TERM; sleep {mark}", mechanism, timeout_s=0.5)
    assert outcome.timed_out
    assert await gone(mark)


@pytest.fixture
async def hidden_child(place: Scene, bubblewrap: Probe) -> AsyncIterator[tuple[str, asyncio.Task[object]]]:
    mark = f"6{os.getpid()}.25"
    signal_pipe(place)
    task: asyncio.Task[object] = asyncio.ensure_future(
        place.run(
            f"env -i setsid -f /bin/sh -c 'echo up > free/up; while :; do /bin/sleep 1; done' {mark}; sleep 60",
            bubblewrap,
        )
    )
    yield mark, task
    task.cancel()
    await asyncio.wait([task])


async def test_what_hides_ends_also_when_the_keeper_is_killed(
    hidden_child: tuple[str, asyncio.Task[object]], place: Scene
) -> None:
    """It has neither the keeper's session nor its environment; its process namespace ends it."""
    mark, task = hidden_child
    await asyncio.to_thread((place.work / "free/up").read_text)
    assert running(mark)
    (keeper,) = (
        child for child in psutil.Process().children() if any("import keeper" in word for word in child.cmdline())
    )
    keeper.send_signal(signal.SIGKILL)
    with pytest.raises(ToolError):
        await task
    assert await gone(mark)


@pytest.mark.parametrize("planted", [".claude", ".mcp.json", "sub", "deep", "deep/a"])
async def test_a_link_on_the_way_to_a_protected_path_is_refused(mechanism: Probe, place: Scene, planted: str) -> None:
    """Put there by something that was not confined: the target would be mounted upon, and the link still be moved."""
    path = place.work / planted
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(place.outside)
    before = sorted(place.outside.iterdir())
    with pytest.raises(EnvironmentProblem, match="symbolic link"):
        await place.run("echo x > sub/ran", mechanism)
    assert sorted(place.outside.iterdir()) == before


async def test_a_hidden_path_that_is_a_link_hides_what_it_leads_to(mechanism: Probe, place: Scene) -> None:
    (place.outside / "there").mkdir()
    (place.outside / "there/key").write_text("found")
    shutil.rmtree(place.secret)
    place.secret.symlink_to(place.outside / "there")
    assert "found" in (await place.run(f"cat {place.secret}/key {place.outside}/there/key", None)).output
    assert "found" not in (await place.run(f"cat {place.secret}/key {place.outside}/there/key", mechanism)).output


async def test_a_command_cannot_open_what_another_one_holds_shut(bubblewrap: Probe, place: Scene) -> None:
    """Two at once in one workspace: the first cannot swap a folder that the second is about to mount upon."""
    up = signal_pipe(place)
    first = asyncio.ensure_future(
        place.run(
            "echo up > free/up; while [ ! -e free/stop ]; do rmdir .claude; mv .claude x; mv sub y; mv deep z; "
            "ln -s /etc .claude; done",
            bubblewrap,
        )
    )
    await asyncio.to_thread(up.read_text)
    for _ in range(20):
        outcome = await place.run("mkdir -p .claude/x deep/a/b/c; echo x > .claude/settings", bubblewrap)
        assert "Read-only file system" in outcome.output
    (place.work / "free/stop").touch()
    assert place.harm(await first) == set()


async def test_folders_that_stood_for_nothing_can_be_taken_away(bubblewrap: Probe, place: Scene) -> None:
    (place.work / "deep/a").mkdir(parents=True)
    await place.run("true", bubblewrap)
    assert (place.work / ".claude").is_dir()
    ground.unmake(place.policy())
    assert not (place.work / ".claude").exists()
    assert not (place.work / "deep/a/b").exists()
    assert (place.work / ".retinue/settings").read_text() == "ours\n"
