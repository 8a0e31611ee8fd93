"""The local cluster as commands see it, with a real Ray: started once, shared, and gone without a trace."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from retinue.orchestrator.cluster import own
from retinue.orchestrator.cluster.folder import ClusterFolder
from retinue.orchestrator.cluster.identity import ProcessId
from retinue.orchestrator.cluster.processes import end_members, identify, is_alive, members
from retinue.tools.errors import EnvironmentProblem, StateError

pytestmark = pytest.mark.live

SECRETS = {"ANTHROPIC_API_KEY": "sk-planted", "GITHUB_TOKEN": "ghp-planted", "HTTPS_PROXY": "http://u:planted@p"}
DRIVER = """
import json, os, sys
import ray
ray.init(address=sys.argv[1], namespace="test", log_to_driver=False, logging_level="ERROR")
class Counter:
    def __init__(self):
        self.count = 0
    def up(self):
        self.count += 1
        return self.count, os.getpid(), dict(os.environ)
options = dict(name="counter", lifetime="detached", get_if_exists=True, num_cpus=0)
counter = ray.remote(Counter).options(**options).remote()
print(json.dumps(ray.get(counter.up.remote(), timeout=30)))
"""


def settings_of(base: Path, **others: float | str) -> own.ClusterSettings:
    """A fixed build: the test must not depend on nobody changing a file meanwhile."""
    return replace(own.ClusterSettings(base=base, build="tested"), **others)


@pytest.fixture
def base() -> Generator[Path]:
    """Short, since Ray's sockets lie below it. Whatever a test leaves is ended."""
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "b"
        yield path
        own.stop(force=True, settings=settings_of(path))


@pytest.fixture
def settings(base: Path) -> own.ClusterSettings:
    return settings_of(base)


def shell() -> dict[str, str]:
    return {**os.environ, **SECRETS}


def attach(cluster: own.ClusterHandle) -> tuple[int, int, dict[str, str]]:
    """What the detached counter says to a driver that comes and goes: count, process, environment."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, cluster.address],
        env={**shell(), "RAY_AUTH_TOKEN": "of another cluster", **cluster.env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, pid, environ = json.loads(done.stdout)
    return count, pid, environ


def all_of(cluster: own.ClusterHandle) -> list[ProcessId]:
    assert cluster.folder is not None
    record = ClusterFolder(cluster.folder).record()
    assert record is not None
    return [record.keeper, *members(cluster.tag)]


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    """For what another process does by itself, and tells nobody."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def all_gone(processes: list[ProcessId]) -> bool:
    return not any(map(is_alive, processes))


@contextmanager
def held(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def modes_below(folder: Path) -> dict[str, int]:
    return {entry.name: stat.S_IMODE(entry.lstat().st_mode) for entry in folder.iterdir()}


def test_a_cluster_is_shared_by_commands_outlives_them_and_ends_without_a_trace(
    settings: own.ClusterSettings, base: Path, tmp_path: Path
) -> None:
    first = own.ensure(shell(), settings=settings)
    assert first.started
    assert first.folder is not None

    count, worker, environ = attach(first)
    assert count == 1
    second = own.ensure(shell(), settings=settings)
    assert not second.started
    assert second == first.model_copy(update={"started": False})
    assert attach(second)[:2] == (2, worker), "the detached actor lives on between drivers"

    processes = all_of(first)
    assert identify(worker) in processes
    assert len(processes) == 8, "keeper, ray start, gcs, raylet, dashboard and two agents that Ray insists on, worker"
    for process in processes:
        seen = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"planted" not in seen, f"a secret of the shell is in the environment of process {process.pid}"
    assert not [value for value in environ.values() if "planted" in value]
    token = (first.folder / "token").read_text()
    assert token not in environ.values()

    assert stat.S_IMODE(base.stat().st_mode) == 0o700
    assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
    assert {modes_below(first.folder)[name] for name in ("token", "keeper.log", "record.json")} == {0o600}
    keeper = processes[0].pid
    assert os.getsid(keeper) != os.getsid(0)
    assert os.getpgid(keeper) != os.getpgid(0)
    sockets = [socket for process in processes for socket in psutil.Process(process.pid).net_connections("tcp")]
    listening = {socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}, "no port is open to the network"
    assert listening

    [shown] = own.status(shell(), settings=settings)
    assert (shown.current, shown.processes, shown.live_runs) == (True, 8, ())
    own.remember_cluster(tmp_path, first)
    assert token not in (tmp_path / "cluster.json").read_text()
    assert own.recall_cluster(tmp_path).address == first.address

    with held(tmp_path / "lock"):
        own.register_run(first, "demo-1", tmp_path / "lock")
        with pytest.raises(StateError, match="demo-1"):
            own.stop(settings=settings)
        assert all(map(is_alive, processes))
    assert own.stop(settings=settings) == [first.folder.name]
    assert all_gone(processes)
    assert members(first.tag) == []
    assert os.listdir(base) == ["lock"]
    with pytest.raises(StateError, match="is gone"):
        own.recall_cluster(tmp_path)


def test_a_newer_build_gets_a_cluster_of_its_own_and_tells_the_older_to_go_early(
    settings: own.ClusterSettings,
) -> None:
    older = own.ensure(shell(), settings=settings)
    newer = own.ensure(shell(), settings=replace(settings, build="newer"))
    assert newer.address != older.address
    assert older.folder is not None
    assert ClusterFolder(older.folder).retired.exists()
    assert own.ensure(shell(), settings=settings).address == older.address
    assert not ClusterFolder(older.folder).retired.exists(), "who asks for it again keeps it"


def test_two_commands_at_once_get_one_cluster_and_a_killed_keeper_takes_ray_with_it(
    settings: own.ClusterSettings,
) -> None:
    got: list[own.ClusterHandle] = []
    both = [threading.Thread(target=lambda: got.append(own.ensure(shell(), settings=settings))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(cluster.started for cluster in got) == [False, True]
    assert got[0].address == got[1].address

    attach(got[0])
    processes = all_of(got[0])
    os.kill(processes[0].pid, signal.SIGINT)
    os.kill(processes[0].pid, signal.SIGHUP)
    assert not own.ensure(shell(), settings=settings).started, "the terminal's signals do not reach it"
    os.kill(processes[0].pid, signal.SIGKILL)
    assert wait_until(lambda: all_gone(processes))
    assert members(got[0].tag) == []
    assert own.status(settings=settings) == []


def test_what_a_kill_of_keeper_and_ray_start_leaves_is_ended_by_the_next_command(
    settings: own.ClusterSettings,
) -> None:
    first = own.ensure(shell(), settings=settings)
    attach(first)
    left = members(first.tag)
    titles = {Path(f"/proc/{process.pid}/comm").read_text().strip() for process in left}
    assert {"ray::DashboardA", "ray::RuntimeEnv", "ray::Counter"} <= titles, (
        "found although they have renamed themselves"
    )
    starter = next(p for p in left if b"ray.scripts" in Path(f"/proc/{p.pid}/cmdline").read_bytes())
    keeper = all_of(first)[0]
    os.kill(keeper.pid, signal.SIGSTOP)
    os.kill(starter.pid, signal.SIGKILL)
    os.kill(keeper.pid, signal.SIGKILL)
    assert wait_until(lambda: all_gone([keeper, starter]))
    second = own.ensure(shell(), settings=settings)
    assert second.started
    assert all_gone(left)
    assert second.tag != first.tag


def test_an_idle_cluster_ends_by_itself_and_a_live_run_keeps_it(base: Path, tmp_path: Path) -> None:
    settings = settings_of(base, idle_s=1.0, ended_s=0.1)
    cluster = own.ensure(shell(), settings=settings)
    processes = all_of(cluster)
    with held(tmp_path / "lock"):
        own.register_run(cluster, "demo-1", tmp_path / "lock")
        assert own.status(settings=settings)[0].live_runs == ("demo-1",)
        assert not wait_until(lambda: not is_alive(processes[0]), 2.5)
    assert wait_until(lambda: all_gone(processes))
    assert os.listdir(base) == ["lock"]


def test_an_ephemeral_cluster_is_nobody_elses_and_goes_with_its_run(base: Path, tmp_path: Path) -> None:
    settings = settings_of(base, ended_s=0.5)
    cluster = own.ensure(shell(), ephemeral=True, settings=settings)
    processes = all_of(cluster)
    assert [shown.current for shown in own.status(shell(), settings=settings)] == [False]
    with held(tmp_path / "lock"):
        own.register_run(cluster, "demo-1", tmp_path / "lock")
        wait_until(lambda: not is_alive(processes[0]), 1.5)
        assert is_alive(processes[0])
    assert wait_until(lambda: all_gone(processes)), "nobody said that the run is over"
    assert os.listdir(base) == ["lock"]


def test_an_ephemeral_cluster_is_gone_when_its_run_was_released(settings: own.ClusterSettings, tmp_path: Path) -> None:
    cluster = own.ensure(shell(), ephemeral=True, settings=settings)
    processes = all_of(cluster)
    own.register_run(cluster, "demo-1", tmp_path / "lock")
    own.release_run(cluster, "demo-1")
    assert all_gone(processes)
    assert own.status(settings=settings) == []


def test_a_python_without_ray_is_an_error_with_the_last_words_of_the_log(base: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *ray.scripts*) echo no Ray today; exit 3;; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    settings = settings_of(base, python=str(python))
    with pytest.raises(EnvironmentProblem, match=r"did not start(.|\n)*no Ray today"):
        own.ensure(shell(), settings=settings)
    assert own.status(settings=settings) == []


def test_a_base_folder_that_others_can_open_is_refused(base: Path) -> None:
    base.mkdir(mode=0o755)
    with pytest.raises(EnvironmentProblem, match="chmod 700"):
        own.ensure(shell(), settings=settings_of(base))


def test_no_tag_never_means_every_process() -> None:
    with pytest.raises(ValueError, match="empty tag"):
        end_members("")
