"""Twenty agents in one run, to the end, with what they took of time and memory."""

from __future__ import annotations

import json
import threading
import time

import psutil
import pytest

from support.live import Bench, bench

AGENTS = 20
MOST_MB_AN_AGENT = 150
"""Gross: an agent's process is about 60 MB; three times that means that something heavy was imported."""
SPEC = """\
version: 1
name: twenty
model: script:script.yaml
repo: {path: repo}
permissions: {mode: acceptEdits}
agents:
  worker: {definition: coder, replicas: 20}
tasks:
%s
limits: {turns: 400, wall: 10m}
"""


def spec_text() -> str:
    tasks = "".join(
        f"  - {{id: t{n}, subject: Write part {n}, owner: worker-{n}, done_when: test -s parts/{n}.txt}}\n"
        for n in range(1, AGENTS + 1)
    )
    return SPEC % tasks


def script_text() -> str:
    """Each agent writes a file of its own, reads a common one, tells the next agent, and hands in."""
    agents = {}
    for n in range(1, AGENTS + 1):
        agents[f"worker-{n}"] = [
            {
                "wait_for": {"mail_kind": "task_assigned"},
                "calls": [
                    {"TaskUpdate": {"taskId": f"t{n}", "status": "in_progress"}},
                    {"Read": {"file_path": "common.txt"}},
                ],
            },
            {
                "expect": "the common text",
                "calls": [
                    {"Write": {"file_path": f"parts/{n}.txt", "content": f"part {n}\n"}},
                    {"SendMessage": {"to": f"worker-{n % AGENTS + 1}", "message": f"part {n} is written"}},
                    {"TaskUpdate": {"taskId": f"t{n}", "status": "completed"}},
                ],
            },
            {"say": "Done.", "repeat": True},
        ]
    return json.dumps({"version": 1, "agents": agents})


class Watcher(threading.Thread):
    """The highest memory of all processes of a bench, and how many agents there were then."""

    def __init__(self, place: Bench) -> None:
        super().__init__(daemon=True)
        self._place = place
        self._ended = threading.Event()
        self.peak_mb = 0.0
        self.agent_mb = 0.0

    def run(self) -> None:
        while not self._ended.wait(0.5):
            sizes: list[float] = []
            agents: list[float] = []
            for process in self._place.processes():
                try:
                    size = process.memory_full_info().pss / 2**20
                    sizes.append(size)
                    if "AgentActor" in " ".join(process.cmdline()):
                        agents.append(size)
                except (psutil.Error, AttributeError):
                    continue
            if sum(sizes) > self.peak_mb:
                self.peak_mb = sum(sizes)
                self.agent_mb = sum(agents) / len(agents) if agents else 0.0

    def end(self) -> None:
        self._ended.set()
        self.join()


def test_twenty_agents_finish_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    with bench() as place:
        place.make_repo({"common.txt": "the common text\n"})
        (place.root / "spec.yaml").write_text(spec_text())
        (place.root / "script.yaml").write_text(script_text())
        watcher = Watcher(place)
        watcher.start()
        begun = time.monotonic()
        done = place.retinue("up", "spec.yaml", "--run-id", "twenty", "--ephemeral", "--trust", timeout=240)
        seconds = time.monotonic() - begun
        watcher.end()
        assert done.returncode == 0, done.stdout + done.stderr
        view = place.view("twenty")
        with capsys.disabled():
            print(f"\n20 agents: {seconds:.1f} s, peak {watcher.peak_mb:.0f} MB, {watcher.agent_mb:.0f} MB an agent")
        assert {t.status for t in view.tasks()} == {"merged"}
        files = place.git("ls-tree", "--name-only", "retinue/twenty/result", "parts/").splitlines()
        assert len(files) == AGENTS
        assert sum(a.received for a in view.agents.values()) >= 2 * AGENTS
        assert all(not a.unread for a in view.agents.values())
        assert 0 < watcher.agent_mb < MOST_MB_AN_AGENT
        assert place.git("status", "--porcelain") == ""
