"""A run survives the death of any of its processes, and of all at once: on real clusters, with `kill -9`."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from retinue.orchestrator.cluster import own
from support.chaos import SINGLE, Storm
from support.crash_scene import Scene, Spy, eventually, kill_cluster, spy_on
from support.invariants import assert_invariants

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def short() -> Generator[Path]:
    """Ray's sockets lie below it, and their paths are limited."""
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cluster(short: Path) -> Generator[own.ClusterHandle]:
    """Shared by all tests that leave it alive; kept apart from the user's own."""
    settings = own.ClusterSettings(base=short / "c", unused_s=900, idle_s=900)
    yield own.ensure(os.environ, settings=settings)
    own.stop(force=True, settings=settings)


@pytest.fixture(scope="module")
def spy(cluster: own.ClusterHandle) -> Generator[Spy]:
    with spy_on(cluster) as found:
        yield found


@pytest.fixture
def scene(short: Path, cluster: own.ClusterHandle, request: pytest.FixtureRequest) -> Generator[Scene]:
    """A run on the shared cluster."""
    run = f"r{crc32(str(request.node.name).encode()):08x}"
    made = Scene.make(short / run, run, ("--address", cluster.address), {**os.environ, **cluster.env})
    yield made
    made.clean_up()


@pytest.fixture
def alone(short: Path) -> Generator[Scene]:
    """A run that brings its own cluster."""
    made = Scene.make(short / "alone", "alone", ("--ephemeral",), os.environ)
    yield made
    made.clean_up()


def kill(spy: Spy, scene: Scene, *names: str) -> None:
    for pid in [spy.pid(scene.run, name) for name in names]:
        os.kill(pid, signal.SIGKILL)


def must_end_well(scene: Scene) -> None:
    eventually("the run is over", scene.is_over)
    assert_invariants(scene.dir.root)
    scene.must_be_done()


def test_viewer_and_team_are_killed_and_the_run_goes_on_with_the_agents_that_live(scene: Scene, spy: Spy) -> None:
    scene.open_gate("ada")
    scene.up()
    scene.holds("ben")
    scene.viewers[0].kill()
    eventually("ada's work has landed", lambda: "task-ada" in scene.merged())
    kill(spy, scene, "team")
    second = scene.resume()
    eventually("the second viewer has caught up", lambda: second.has_said("task #task-ada merged"))
    scene.open_gate()
    code, out, err = second.ended()
    assert (code, err) == (0, ""), out
    must_end_well(scene)
    assert scene.incarnations() == {"ada": 1, "ben": 1, "cleo": 1}
    assert spy.pids(scene.run) == {}


def test_agents_are_killed_in_a_call_while_the_model_speaks_and_at_rest(scene: Scene, spy: Spy) -> None:
    viewer = scene.up()
    eventually("the model speaks to ada", lambda: scene.result("ada", "number 1") and scene.steps("ada") >= 4)
    kill(spy, scene, "ada")
    scene.holds("ada")
    assert len(scene.left_of("ada~1/")) >= 2
    kill(spy, scene, "ada")
    eventually("the call has a result", lambda: scene.result("ada", "sleep 900"))
    assert scene.left_of("ada~1/") == []
    scene.must_have_interrupted("ada")
    scene.open_gate("ben")
    eventually("ben rests", lambda: scene.rests("ben") and "task-ben" in scene.merged())
    kill(spy, scene, "ben")
    scene.open_gate()
    assert viewer.ended()[0] == 0
    must_end_well(scene)
    assert scene.incarnations() == {"ada": 3, "ben": 2, "cleo": 1}


def test_ledger_gateway_and_scheduler_are_killed_with_an_agent_and_ctrl_c_still_finishes_every_step(
    scene: Scene, spy: Spy
) -> None:
    scene.open_gate("ben")
    viewer = scene.up()
    eventually("the model speaks to ada", lambda: scene.result("ada", "number 1") and scene.steps("ada") >= 4)
    os.kill(spy.pid("retinue", "scheduler"), signal.SIGKILL)
    kill(spy, scene, "ledger", "gateway", "ben")
    scene.holds("ada")
    viewer.process.send_signal(signal.SIGINT)
    eventually("the run drains", lambda: scene.phase() == "draining")
    scene.open_gate()
    code, out, _ = viewer.ended()
    assert code == 130, out
    assert f"retinue resume {scene.run}" in out
    assert scene.is_over()
    result = scene.result("ada", "sleep 900")
    assert result is not None
    assert not result.is_error, "the step in flight was finished"
    assert scene.resume().ended()[0] == 0
    must_end_well(scene)


def test_everything_is_killed_at_once_and_two_resumes_finish_the_work(alone: Scene) -> None:
    """A resume stays on the cluster while that restarts the team, and takes a new one when it is gone."""
    alone.open_gate("ben")
    viewer = alone.up()
    alone.holds("ada")
    eventually("ben has sent its last number", lambda: alone.result("ben", "number 2"))
    cluster = alone.cluster()
    assert cluster is not None
    viewer.kill()
    os.kill(int(alone.dir.lock.read_text()), signal.SIGKILL)
    viewer = alone.resume()
    eventually("the viewer has caught up", lambda: viewer.has_said("ada"))
    assert alone.cluster() == cluster.model_copy(update={"started": False})
    viewer.kill()
    kill_cluster(cluster)
    alone.must_not_touch_the_checkout()
    assert_invariants(alone.dir.root)
    alone.open_gate()
    first, second = alone.resume(), alone.resume()
    assert [first.ended()[0], second.ended()[0]] == [0, 0]
    must_end_well(alone)
    alone.must_have_interrupted("ada")


def test_a_run_is_stopped_and_resumed_by_two_at_once_and_ended_by_ctrl_c_twice_and_resumed(scene: Scene) -> None:
    scene.open_gate("ben")
    viewer = scene.up()
    scene.holds("ada")
    scene.open_gate("ada")
    code, out, err = scene.do("stop", scene.run)
    assert code == 0, err
    assert f"retinue resume {scene.run}" in out
    first, second = scene.resume(), scene.resume()
    assert viewer.ended()[0] == 1, "the run that it showed was stopped"

    scene.holds("cleo")
    first.process.send_signal(signal.SIGINT)
    eventually("the run drains", lambda: scene.phase() == "draining")
    first.process.send_signal(signal.SIGINT)
    code, out, _ = first.ended()
    assert code == 130, out
    assert second.ended()[0] == 1, "the run that it showed was stopped"
    assert scene.is_over()
    assert scene.left_of() == []

    assert scene.resume().ended()[0] == 0
    must_end_well(scene)
    scene.must_have_interrupted("cleo")


def test_a_team_that_could_not_start_leaves_nothing_behind_and_a_resume_tries_again(scene: Scene, spy: Spy) -> None:
    scene.write_spec(f"test -e {scene.gates}/setup")
    code, _, err = scene.up().ended()
    assert (code, "repo.setup failed in the worktree of" in err) == (3, True), err
    eventually("nothing is left", lambda: spy.pids(scene.run) == {})
    assert not scene.dir.is_live()
    scene.open_gate("setup")
    code, _, err = scene.do("resume", scene.run, "--detach", *scene.flags)
    assert code == 0, err
    assert scene.incarnations() == {"ada": 1, "ben": 1, "cleo": 1}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_survives_three_kills_at_random(scene: Scene, spy: Spy, seed: int) -> None:
    storm = Storm(scene, Random(seed), SINGLE, spy)
    storm.rage(3)
    assert len(storm.kills) == 3
