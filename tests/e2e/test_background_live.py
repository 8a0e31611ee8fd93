"""Commands in the background of agents on a real cluster: a wake-up, a kill in between, and a server at the end."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from zlib import crc32

import pytest

from retinue.agents.mail.envelopes import end_of
from retinue.agents.records import BackgroundEnded, BackgroundStarted, MailStored, RequestSent
from retinue.orchestrator.cluster import own
from retinue.orchestrator.ledger.records import BackgroundAsked, Reminded
from support.crash_scene import Scene, Spy, eventually, spy_on
from support.invariants import assert_invariants

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def short() -> Generator[Path]:
    """Ray's sockets lie below it, and their paths are limited."""
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cluster(short: Path) -> Generator[own.ClusterHandle]:
    settings = own.ClusterSettings(base=short / "c", unused_s=900, idle_s=900)
    yield own.ensure(os.environ, settings=settings)
    own.stop(force=True, settings=settings)


@pytest.fixture(scope="module")
def spy(cluster: own.ClusterHandle) -> Generator[Spy]:
    with spy_on(cluster) as found:
        yield found


@pytest.fixture
def scene(short: Path, cluster: own.ClusterHandle, request: pytest.FixtureRequest) -> Generator[Scene]:
    run = f"r{crc32(str(request.node.name).encode()):08x}"
    made = Scene.make(short / run, run, ("--address", cluster.address), {**os.environ, **cluster.env})
    _write(made)
    yield made
    made.clean_up()


def _write(scene: Scene) -> None:
    """One agent with one task: it needs the end of a command that it has put into the background."""
    build = (
        f"echo built >>{scene.gates}/built; until test -e {scene.gates}/ada; do sleep 0.05; done; echo all went well"
    )
    spec = {
        "version": 1,
        "name": "builder",
        "model": "script:script.yaml",
        "permissions": {"mode": "bypassPermissions"},
        "repo": {"path": str(scene.repo)},
        "sandbox": {"writable": [str(scene.gates)]},
        "agents": {"ada": {"definition": "coder", "description": "builds"}},
        "tasks": [{"id": "build", "subject": "Build it", "description": "as told", "owner": "ada"}],
        "limits": {"turns": 50, "wall": "5m"},
    }
    turns: list[dict[str, object]] = [
        {
            "wait_for": {"mail_kind": "task_assigned"},
            "calls": {"TaskUpdate": {"taskId": "build", "status": "in_progress"}},
        },
        {"calls": {"Bash": {"command": build, "run_in_background": True}}},
        {"calls": {"Bash": {"command": "echo meanwhile >meanwhile.txt"}}},
        {"wait_for": {"mail_kind": "background_end"}, "calls": {"Bash": {"command": "echo told >ada.txt"}}},
        {"calls": {"Bash": {"command": "echo serving; sleep 100000", "run_in_background": True}}},
        {"calls": {"TaskUpdate": {"taskId": "build", "status": "completed"}}},
        {"say": "It is built; the server runs.", "repeat": True},
    ]
    (scene.root / "team.yaml").write_text(json.dumps(spec))
    (scene.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": turns}}))


def ends(scene: Scene) -> list[str]:
    return [record.task.status for _, record in scene.records() if isinstance(record, BackgroundEnded)]


def begun(scene: Scene) -> list[str]:
    return [record.task.id for _, record in scene.records() if isinstance(record, BackgroundStarted)]


def must_have_ended_well(scene: Scene, first: str) -> None:
    """Told of the build once; never reminded while it ran; asked once about the server, which kept nothing open."""
    eventually("the run is over", scene.is_over)
    assert_invariants(scene.dir.root)
    assert scene.phase() == "done", scene.told()
    assert ends(scene) == [first, "stopped"]
    build, server = begun(scene)
    records = [record for _, record in scene.records()]
    read = [mail for record in records if isinstance(record, RequestSent) for mail in record.mail]
    assert read.count(end_of(build)) == 1
    assert [r.envelope.id for r in records if isinstance(r, MailStored)].count(end_of(build)) == 1
    assert not any(isinstance(record, Reminded) for record in records)
    assert [record.tasks for record in records if isinstance(record, BackgroundAsked)] == [(server,)]
    assert (scene.gates / "built").read_text() == "built\n"
    assert scene.left_of() == []


def test_an_agent_works_beside_its_build_is_woken_by_its_end_and_its_server_keeps_no_run_open(scene: Scene) -> None:
    viewer = scene.up()
    eventually("the agent rests beside its build", lambda: begun(scene) and scene.rests("ada"))
    task = begun(scene)[0]
    code, out, err = scene.do("status", scene.run)
    assert code == 0, err
    assert task in out
    assert "none" in next(line for line in out.splitlines() if task in line), "it holds no lease"
    shown = json.loads(scene.do("status", scene.run, "--json")[1])["agents"][0]["background"]
    assert [(one["id"], one["lease"]) for one in shown] == [(task, None)]
    scene.open_gate("ada")
    code, out, _ = viewer.ended()
    assert code == 0, out
    must_have_ended_well(scene, "completed")
    assert viewer.has_said("goes on in the background, without a lease")


def test_a_kill_of_the_agent_ends_its_build_and_is_told_once(scene: Scene, spy: Spy) -> None:
    viewer = scene.up()
    eventually("the agent rests beside its build", lambda: begun(scene) and scene.rests("ada"))
    eventually("the build has begun", lambda: (scene.gates / "built").exists())
    assert scene.left_of("ada~1/") != []
    os.kill(spy.pid(scene.run, "ada"), signal.SIGKILL)
    code, out, _ = viewer.ended()
    assert code == 0, out
    must_have_ended_well(scene, "lost")
    assert scene.incarnations() == {"ada": 2}
