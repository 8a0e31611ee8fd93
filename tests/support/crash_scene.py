"""A team at work on a real cluster whose every act leaves a mark that can be counted, and ways to kill parts of it.

Three agents work on a small repository. Each unsafe command appends its own name to a file outside of every worktree,
so one that ran twice shows; each agent sends numbered mail; each has one command that waits for a gate, so that a test
can kill something while it runs. Waiting is for what a ledger or a file says, never for time to pass.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from retinue.agents.identity import name_of
from retinue.agents.records import BlockComplete, MailStored, RequestSent, ToolFinished, ToolStarted, TurnClosed
from retinue.orchestrator.cluster.folder import ClusterFolder
from retinue.orchestrator.cluster.own import ClusterHandle
from retinue.orchestrator.cluster.processes import end_members, is_alive, members, send_signal
from retinue.orchestrator.ledger.frames import Record
from retinue.orchestrator.ledger.parse import AnyRecord, parse_record
from retinue.orchestrator.ledger.reader import Tail
from retinue.orchestrator.ledger.records import IncarnationStarted, PhaseChanged, WorkMerged
from retinue.orchestrator.state.paths import RunDir, StateDir
from retinue.tools.execution.calls import CallResult
from retinue.tools.shell.reap import TAG, reap

NAMES = ("ada", "ben", "cleo")
NEXT = {"ada": "ben", "ben": "cleo", "cleo": "ada"}
LETTERS = 2
MARKED = ("one", "two", "hold")
LOOK_S = 0.02
PATIENCE_S = 60.0

_SPY = """
import json, sys
import ray
from ray.core.generated import gcs_pb2
from ray._private.state import state
ray.init(address=sys.argv[1], namespace="spy", log_to_driver=False, logging_level="ERROR")
print("ready", flush=True)
for line in sys.stdin:
    rows = [gcs_pb2.ActorTableData.FromString(row) for row in
            state._connect_and_get_accessor().get_actor_table(None, "ALIVE")]
    print(json.dumps([[row.ray_namespace, row.name, row.pid] for row in rows]), flush=True)
"""


def eventually(what: str, true: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """For what another process does by itself, and tells nobody."""
    until = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < until, f"waited {patience_s:.0f} s for: {what}"
        time.sleep(LOOK_S)


@dataclass(slots=True)
class Spy:
    """Knows which process an actor is."""

    process: subprocess.Popen[str]

    def pids(self, run: str) -> dict[str, int]:
        """Name of the actor → its process, of those that are alive in a run (or in the cluster's own namespace)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        rows = cast(list[tuple[str, str, int]], json.loads(self.process.stdout.readline()))
        return {name: pid for namespace, name, pid in rows if namespace == run and pid}

    def pid(self, run: str, name: str) -> int:
        """Of the newest incarnation, for an agent's name. Waits until there is one."""
        eventually(f"a process of {name}", lambda: self.look(run, name))
        return self.look(run, name)

    def look(self, run: str, name: str) -> int:
        """The same now; 0 when there is none."""
        found = [(0, 0)]
        for actor, pid in self.pids(run).items():
            if actor == name or actor.startswith(f"{name}~"):
                found.append((int(actor.rpartition(".")[2]) if "." in actor else 0, pid))
        return max(found)[1]


@contextmanager
def spy_on(cluster: ClusterHandle) -> Generator[Spy]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SPY, cluster.address],
        env={**os.environ, **cluster.env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Spy(process)
    finally:
        process.kill()
        process.communicate()


@dataclass(slots=True)
class Viewer:
    """A `retinue` command at work."""

    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    def ended(self, patience_s: float = PATIENCE_S) -> tuple[int, str, str]:
        code = self.process.wait(patience_s)
        return code, self.output.read_text(), self.errors.read_text()

    def has_said(self, text: str) -> bool:
        return text in self.output.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass(slots=True)
class Scene:
    """One run of the team. `flags` say on which cluster, `env` how to get in."""

    root: Path
    run: str
    flags: tuple[str, ...]
    env: Mapping[str, str]
    viewers: list[Viewer] = field(default_factory=list[Viewer])
    tail: Tail | None = None
    frames: list[Record] = field(default_factory=list[Record])
    known: list[tuple[str, AnyRecord]] = field(default_factory=list[tuple[str, AnyRecord]])

    # --- before ---

    @classmethod
    def make(cls, root: Path, run: str, flags: tuple[str, ...], env: Mapping[str, str]) -> Scene:
        scene = cls(root, run, flags, env)
        scene.gates.mkdir(parents=True)
        _repository(scene.repo)
        scene.write_spec()
        turns = {name: list(_turns(scene, name)) for name in NAMES}
        (root / "script.yaml").write_text(json.dumps({"version": 1, "agents": turns}))
        return scene

    def write_spec(self, *setup: str) -> None:
        """`setup`: commands that prepare each worktree."""
        spec = _spec(self)
        spec["repo"] = {"path": str(self.repo), "setup": list(setup)}
        (self.root / "team.yaml").write_text(json.dumps(spec))

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def gates(self) -> Path:
        return self.root / "gates"

    @property
    def state(self) -> StateDir:
        return StateDir(self.root / "state")

    @property
    def dir(self) -> RunDir:
        return RunDir(self.state.runs / self.run)

    def open_gate(self, *names: str) -> None:
        for name in names or NAMES:
            (self.gates / name).touch()

    # --- commands ---

    def up(self) -> Viewer:
        spec = str(self.root / "team.yaml")
        return self.start("up", spec, "--run-id", self.run, "--trust", *self.flags)

    def resume(self) -> Viewer:
        return self.start("resume", self.run, *self.flags)

    def start(self, *args: str) -> Viewer:
        output, errors = (self.root / f"viewer-{len(self.viewers)}.{what}" for what in ("out", "err"))
        with output.open("w") as out, errors.open("w") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "retinue", *args, "--state-dir", str(self.state.root)],
                env=dict(self.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.viewers.append(Viewer(process, output, errors))
        return self.viewers[-1]

    def do(self, *args: str) -> tuple[int, str, str]:
        return self.start(*args).ended()

    # --- what is to be seen ---

    def records(self) -> list[tuple[str, AnyRecord]]:
        """(writer, record) of all that was written, by replaced processes as well."""
        self.tail = self.tail or Tail(self.dir.ledger, voided=True)
        for frame in self.tail.poll():
            self.frames.append(frame)
            record = parse_record(frame.kind, frame.body)
            if record is not None:
                self.known.append((frame.writer, record))
        return self.known

    def phase(self) -> str:
        phases = [record.phase for _, record in self.records() if isinstance(record, PhaseChanged)]
        return phases[-1] if phases else ""

    def marks(self) -> Counter[str]:
        file = self.gates / "marks"
        return Counter(file.read_text().splitlines() if file.exists() else ())

    def holds(self, name: str) -> None:
        """Wait until this agent's command runs that waits for its gate."""
        eventually(f"{name} holds", lambda: self.marks()[f"{name} hold"])

    def call(self, name: str, text: str) -> str:
        """Id of the agent's call whose input has this text; empty while it was not made."""
        for writer, record in self.records():
            if not isinstance(record, BlockComplete) or record.block.type != "tool_use":
                continue
            if name_of(writer) == name and text in json.dumps(record.block.input):
                return record.block.id
        return ""

    def result(self, name: str, text: str) -> CallResult | None:
        call = self.call(name, text)
        for writer, record in self.records():
            if isinstance(record, ToolFinished) and name_of(writer) == name and record.result.call_id == call:
                return record.result
        return None

    def starts(self, name: str, text: str) -> int:
        call = self.call(name, text)
        return sum(
            isinstance(record, ToolStarted) and name_of(writer) == name and record.call_id == call
            for writer, record in self.records()
        )

    def steps(self, name: str) -> int:
        return sum(isinstance(record, RequestSent) and name_of(writer) == name for writer, record in self.records())

    def merged(self) -> set[str]:
        return {record.task_id for _, record in self.records() if isinstance(record, WorkMerged)}

    def rests(self, name: str) -> bool:
        """Its last turn is closed."""
        own = [r for writer, r in self.records() if name_of(writer) == name and not isinstance(r, MailStored)]
        return bool(own) and isinstance(own[-1], TurnClosed)

    def incarnations(self) -> dict[str, int]:
        """The newest of each agent."""
        found = [r for _, r in self.records() if isinstance(r, IncarnationStarted)]
        return {name_of(record.agent): record.incarnation for record in found}

    def letters(self) -> Counter[str]:
        """Every numbered message, as often as its recipient read it."""
        text = {r.envelope.id: r.envelope.body for _, r in self.records() if isinstance(r, MailStored)}
        read = [mail for _, record in self.records() if isinstance(record, RequestSent) for mail in record.mail]
        return Counter(body.text for mail in read if (body := text[mail]).kind == "text")

    def is_over(self) -> bool:
        return self.phase() in ("done", "failed", "stopped") and not self.dir.is_live()

    def left_of(self, name: str = "") -> list[int]:
        """Processes that commands of the run (or of one agent) have started, and that are still there."""
        mark = f"{TAG}={self.run}/{name}".encode()
        return [pid for pid in _processes() if any(entry.startswith(mark) for entry in _environment(pid))]

    # --- how it must end ---

    def must_be_done(self) -> None:
        """All work landed once, every command ran once, every message was read once, and nothing else was touched."""
        assert self.phase() == "done", self.told()
        for name, what in ((name, what) for name in NAMES for what in MARKED):
            left = self.marks()[f"{name} {what}"]
            assert left == 1 or (left == 0 and self.was_interrupted(name, f"'{name} {what}'")), f"{name} {what}: {left}"
        expected = Counter(letter(name, number) for name in NAMES for number in range(1, LETTERS + 1))
        assert self.letters() == expected
        result = f"retinue/{self.run}/result"
        bodies = _git(self.repo, "log", "--format=%B", f"main..{result}")
        for name in NAMES:
            assert _git(self.repo, "show", f"{result}:{name}.txt") == f"by {name}\n", name
            assert bodies.count(f"Task: task-{name}\nAgent: ") == 1
        self.must_not_touch_the_checkout()
        assert self.left_of() == []

    def must_not_touch_the_checkout(self) -> None:
        assert _git(self.repo, "status", "--porcelain", "--ignored") == ""
        assert _git(self.repo, "rev-parse", "HEAD", "main").split() == [(self.root / "base").read_text()] * 2
        assert _git(self.repo, "symbolic-ref", "HEAD") == "refs/heads/main\n"

    def must_have_interrupted(self, name: str) -> None:
        """Its command that waits for the gate was killed with its agent: told so to the model, and not run again."""
        assert self.was_interrupted(name, "sleep 900")
        assert self.starts(name, "sleep 900") == 1

    def was_interrupted(self, name: str, text: str) -> bool:
        result = self.result(name, text)
        return result is not None and result.is_error and result.content.startswith("Interrupted, outcome unknown")

    def told(self) -> str:
        lines = [f"{writer}: {record}"[:300] for writer, record in self.records()]
        return "\n".join(lines[-40:])

    # --- after ---

    def clean_up(self) -> None:
        """Whatever the run has left: viewers, actors on a shared cluster, commands, a cluster of its own."""
        for viewer in self.viewers:
            if viewer.process.poll() is None:
                viewer.kill()
        handle = self.cluster()
        if handle is not None and handle.ephemeral:
            kill_cluster(handle)
        elif self.dir.root.exists():
            self.do("down", self.run)
        reap(f"{self.run}/")

    def cluster(self) -> ClusterHandle | None:
        file = self.dir.root / "cluster.json"
        return ClusterHandle.model_validate_json(file.read_bytes()) if file.exists() else None


def kill_cluster(cluster: ClusterHandle) -> None:
    """The keeper, Ray, and every actor, at once."""
    assert cluster.folder is not None
    record = ClusterFolder(cluster.folder).record()
    found = [*([record.keeper] if record else []), *members(cluster.tag)]
    for process in found:
        send_signal(process, signal.SIGKILL)
    eventually("the cluster is gone", lambda: not any(map(is_alive, found)))
    end_members(cluster.tag)


def letter(sender: str, number: int) -> str:
    return f"number {number} from {sender}"


def _repository(repo: Path) -> None:
    repo.mkdir()
    _git(repo, "init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "s"), ("user.email", "s@example.invalid")):
        _git(repo, "config", key, value)
    (repo / "README").write_text("a small repository\n")
    _git(repo, "add", "--all")
    _git(repo, "commit", "--quiet", "--message", "start")
    (repo.parent / "base").write_text(_git(repo, "rev-parse", "HEAD").strip())


def _git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", "-C", str(repo), *args], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def _spec(scene: Scene) -> dict[str, object]:
    return {
        "version": 1,
        "name": "relay",
        "model": "script:script.yaml",
        "permissions": {"mode": "bypassPermissions"},
        "sandbox": {"writable": [str(scene.gates)]},
        "agents": {name: {"definition": "coder", "description": f"writes {name}.txt"} for name in NAMES},
        "tasks": [
            {
                "id": f"task-{name}",
                "subject": f"Write {name}.txt",
                "description": "as told",
                "owner": name,
                "blocked_by": ["task-ada"] if name == "cleo" else [],
                "done_when": f"test -f {name}.txt",
            }
            for name in NAMES
        ],
        "limits": {"turns": 300, "wall": "10m"},
    }


def _turns(scene: Scene, name: str) -> Iterator[dict[str, object]]:
    """One call a turn, so that a message that broke off behind its only call lacks nothing."""
    mark = f"printf '%s\\n' '{name} {{}}' >> {scene.gates}/marks"
    hold = f"{mark.format('hold')}; sleep 900 & until test -e {scene.gates}/{name}; do sleep 0.05; done; kill %1"
    long = " ".join(f"word{n}" for n in range(30))

    def bash(command: str) -> dict[str, object]:
        return {"Bash": {"command": command, "description": "leave a mark"}}

    def mail(number: int) -> dict[str, object]:
        return {"SendMessage": {"to": NEXT[name], "summary": "a number", "message": letter(name, number)}}

    def task(status: str) -> dict[str, object]:
        return {"TaskUpdate": {"taskId": f"task-{name}", "status": status}}

    # A write that was interrupted may be missing, and the queue sends the task back; a reminder means the same.
    again = [bash(f"printf 'by {name}\\n' > {name}.txt"), task("completed")]
    for kind in ("task_returned", "notice"):
        yield {"when": {"mail_kind": kind}, "calls": again, "repeat": True}
    sender = next(other for other, to in NEXT.items() if to == name)
    yield {"wait_for": {"mail_kind": "task_assigned"}, "calls": task("in_progress")}
    yield {"calls": bash(mark.format("one"))}
    yield {"calls": mail(1)}
    yield {"say": long, "calls": bash(mark.format("two")), "pace": {"tokens_per_second": 40}}
    yield {"calls": bash(hold)}
    yield {"calls": {"Read": {"file_path": "README"}}}
    yield {"calls": {"Write": {"file_path": f"{name}.txt", "content": f"by {name}\n"}}}
    yield {"calls": mail(2)}
    yield {"calls": task("completed")}
    yield {"wait_for": {"mail_from": sender, "matches": letter(sender, 2)}, "say": "All is written and read."}


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
