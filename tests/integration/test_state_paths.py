from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from datetime import date
from pathlib import Path

import pytest

from retinue.orchestrator.ledger.lock import (
    Mount,
    RunLock,
    filesystem_of,
    is_held,
    mounts_of_this_machine,
    refuse_network_filesystem,
)
from retinue.orchestrator.state.paths import StateDir, new_run_id, state_root, write_private
from retinue.tools.errors import EnvironmentProblem, SpecError, StateError


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def age(state: StateDir, run_id: str, seconds: int) -> None:
    key = state.find(run_id).control_key
    when = key.stat().st_mtime - seconds
    os.utime(key, (when, when))


def test_the_state_lies_where_the_flag_then_xdg_then_home_says() -> None:
    environ = {"HOME": "/home/ada", "XDG_STATE_HOME": "/var/xdg"}
    assert state_root(environ, Path("/else/where")) == Path("/else/where")
    assert state_root(environ) == Path("/var/xdg/retinue")
    assert state_root({"HOME": "/home/ada"}) == Path("/home/ada/.local/state/retinue")
    assert state_root({"HOME": "/home/ada", "XDG_STATE_HOME": "relative"}) == Path("/home/ada/.local/state/retinue")


def test_without_any_home_the_remedy_is_named() -> None:
    with pytest.raises(EnvironmentProblem, match="--state-dir"):
        state_root({})


def test_a_run_is_private_from_the_first_moment(state: StateDir) -> None:
    umask = os.umask(0)
    try:
        run = state.create("demo-1")
        write_private(run.env, "{}")
        RunLock.acquire(run.lock).release()
    finally:
        os.umask(umask)
    folders = (state.runs, run.root, run.tool_results, run.tasks, run.tmp)
    assert [mode(folder) for folder in folders] == [0o700] * 5
    assert [mode(file) for file in (run.control_key, run.env, run.lock)] == [0o600] * 3


def test_every_run_has_a_control_key_of_its_own(state: StateDir) -> None:
    keys = {state.create(run_id).read_control_key() for run_id in ("one", "two")}
    assert [len(key) for key in keys] == [64, 64]


def test_a_run_without_its_control_key_says_so(state: StateDir) -> None:
    run = state.create("one")
    run.control_key.unlink()
    with pytest.raises(StateError, match=r"control\.key cannot be read"):
        run.read_control_key()


def test_a_run_id_is_name_date_and_token() -> None:
    assert new_run_id("Fix the Tests!", date(2026, 3, 9), b"\x00\x44\x32\x14\xc7") == "fix-the-tests-20260309-abcdef"
    assert new_run_id("ÜÜ", date(2026, 3, 9), b"\xff" * 4).startswith("run-20260309-")
    assert len(new_run_id("x" * 200, date(2026, 3, 9), b"\xff" * 4)) == 40 + 16


def test_a_run_id_is_a_ref_that_git_takes() -> None:
    run_id = new_run_id("a..b/c@{~^:.lock", date(2026, 3, 9), b"\xff" * 4)
    assert (
        subprocess.run(["git", "check-ref-format", f"refs/heads/retinue/{run_id}/result"], check=False).returncode == 0
    )


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "a b", "-x", ".hidden", "a~1", "x" * 81, "a\n", "a.lock", "ä"])
def test_a_given_run_id_that_is_no_path_or_ref_part_is_refused(state: StateDir, run_id: str) -> None:
    with pytest.raises(SpecError, match=r"run id .* cannot be used"):
        state.create(run_id)
    assert state.all() == []


def test_a_taken_run_id_is_refused_with_both_ways_out(state: StateDir) -> None:
    state.create("demo")
    with pytest.raises(StateError, match=r"run demo exists already: .*--run-id.*retinue resume demo"):
        state.create("demo")


def test_runs_are_listed_newest_first_and_strangers_are_left_out(state: StateDir) -> None:
    assert state.all() == []
    for run_id, seconds in (("old", 300), ("new", 0), ("middle", 100)):
        state.create(run_id)
        age(state, run_id, seconds)
    (state.runs / ".tmp").mkdir()
    (state.runs / "file").touch()
    assert [run.run_id for run in state.all()] == ["new", "middle", "old"]


def test_a_run_is_found_by_any_prefix_that_only_it_has(state: StateDir) -> None:
    for run_id in ("demo-1", "demo-12", "other"):
        state.create(run_id)
    assert state.find("o").run_id == "other"
    assert state.find("demo-12").run_id == "demo-12"
    assert state.find("demo-1").run_id == "demo-1"


def test_an_ambiguous_or_unknown_run_is_answered_with_what_there_is(state: StateDir) -> None:
    with pytest.raises(StateError, match=r"no run 'x' .*there is none yet; `retinue up SPEC`"):
        state.find("x")
    for run_id in ("demo-1", "demo-2", "other"):
        state.create(run_id)
    with pytest.raises(StateError, match=r"'demo' fits several runs.*demo-2, demo-1"):
        state.find("demo")
    with pytest.raises(StateError, match=r"no run 'x' .*there are: other, demo-2, demo-1"):
        state.find("x")
    with pytest.raises(StateError, match="no run ''"):
        state.find("")


def test_a_long_list_of_runs_is_cut(state: StateDir) -> None:
    for n in range(12):
        state.create(f"run-{n:02}")
    with pytest.raises(StateError, match=r"and 2 more$"):
        state.find("run")


def test_trash_can_be_undone(state: StateDir) -> None:
    run = state.create("demo")
    write_private(run.spec, "version: 1\n")
    thrown = state.to_trash(run)
    assert state.all() == []
    assert [r.run_id for r in state.in_trash()] == ["demo"]
    assert thrown.spec.read_text() == "version: 1\n"
    assert state.from_trash("demo") == run
    assert run.spec.read_text() == "version: 1\n"
    assert state.in_trash() == []


def test_an_id_can_be_thrown_away_twice_and_the_newest_comes_back(state: StateDir) -> None:
    state.to_trash(state.create("demo", random=lambda size: b"\1" * size))
    second = state.create("demo", random=lambda size: b"\2" * size)
    assert state.to_trash(second).run_id == "demo.1"
    os.utime(state.trash / "demo" / "control.key", (1, 1))
    assert state.from_trash("demo").read_control_key() == "02" * 32
    with pytest.raises(StateError, match="run demo exists again"):
        state.from_trash("demo")


def test_what_is_not_in_the_trash_cannot_come_back(state: StateDir) -> None:
    with pytest.raises(StateError, match=r"no run 'demo' in .*trash; there are: none"):
        state.from_trash("demo")


def test_a_live_run_is_not_thrown_away(state: StateDir) -> None:
    run = state.create("demo")
    with RunLock.acquire(run.lock):
        assert run.is_live()
        with pytest.raises(StateError, match="run demo is live: end it first with `retinue down demo`"):
            state.to_trash(run)
    assert not run.is_live()


def test_a_state_folder_that_others_can_write_is_refused(state: StateDir) -> None:
    state.create("demo")
    state.runs.chmod(0o777)
    with pytest.raises(EnvironmentProblem, match="chmod 700"):
        state.create("demo-2")


def test_a_state_folder_that_is_a_link_is_refused(state: StateDir, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state.root.mkdir()
    state.runs.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblem, match="must be a folder that belongs to you"):
        state.create("demo")


def test_a_state_folder_under_a_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentProblem, match="--state-dir"):
        StateDir(tmp_path / "file").create("demo")


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "env.json"
    write_private(path, "one\r\n")
    write_private(path, "two")
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["env.json"]
    with pytest.raises(EnvironmentProblem, match=r"absent/env\.json cannot be used"):
        write_private(tmp_path / "absent" / "env.json", "")


def test_a_held_lock_says_that_the_run_is_live_and_who_holds_it(state: StateDir) -> None:
    run = state.create("demo")
    assert not is_held(run.lock)
    held = RunLock.acquire(run.lock)
    with pytest.raises(StateError, match=rf"run demo is live \(held by process {os.getpid()}\).*retinue resume demo"):
        RunLock.acquire(run.lock)
    assert is_held(run.lock)
    held.release()
    held.release()
    RunLock.acquire(run.lock).release()


def test_a_lock_is_not_inherited_by_what_its_holder_starts(state: StateDir) -> None:
    run = state.create("demo")
    held = RunLock.acquire(run.lock)
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        held.release()
        assert not is_held(run.lock)
        child.kill()


def test_who_only_asks_keeps_nobody_from_acquiring(state: StateDir) -> None:
    run = state.create("demo")
    run.lock.touch(mode=0o600)
    with run.lock.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        pauses: list[float] = []

        def answer(seconds: float) -> None:
            pauses.append(seconds)
            fcntl.flock(asking, fcntl.LOCK_UN)

        with RunLock.acquire(run.lock, pause=answer):
            assert is_held(run.lock)
    assert len(pauses) == 1


def test_a_lock_in_no_folder_is_a_problem_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot be opened"):
        RunLock.acquire(tmp_path / "absent" / "lock")


MOUNTS = [
    Mount("/", "ext4"),
    Mount("/home", "nfs4"),
    Mount("/home/ada", "btrfs"),
    Mount("/mnt", "ext4"),
    Mount("/mnt", "fuse.sshfs"),
]


@pytest.mark.parametrize(
    ("path", "fstype"),
    [
        ("/srv", "ext4"),
        ("/home/bob/state", "nfs4"),
        ("/home/ada/state", "btrfs"),
        ("/home/adam", "nfs4"),
        ("/mnt/x", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_last_mount_holds_a_path(path: str, fstype: str) -> None:
    assert filesystem_of(Path(path), MOUNTS) == fstype


@pytest.mark.parametrize("fstype", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs", "ceph", "smb3"])
def test_a_network_file_system_is_refused_with_a_remedy(tmp_path: Path, fstype: str) -> None:
    with pytest.raises(EnvironmentProblem, match=rf"network file system \({fstype}\).*--state-dir"):
        refuse_network_filesystem(tmp_path, [Mount("/", fstype)])


def test_the_file_system_of_this_test_is_known(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path.resolve(), mounts_of_this_machine()) != ""
