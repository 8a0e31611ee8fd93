"""The main job as a person runs it: a spec for the planted faults, the command line, and what can be seen of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, JsonValue, TypeAdapter

from retinue.orchestrator.cluster import own
from retinue.orchestrator.ledger.parse import AnyRecord, parse_record
from retinue.orchestrator.ledger.reader import read_all
from support.main_job_faults import Fault
from support.main_job_package import git

SCRIPT = Path(__file__).with_name("main_job_script.yaml")
MENDERS = ("ada", "ben", "cleo")
PEERS = {"ada": "Beside you: ben\n", "ben": "Beside you: ada\n", "cleo": ""}
RUN = "job"
LONGEST_S = 120.0
CHANGES = "docs/versions.rst"
NEW_TEST = "tests/test_misspelt.py"
NEW_TEST_COMMAND = "python3 -m unittest tests.test_misspelt"

_WITNESS = """\
#!{python} -IS
import json, os, sys
folder = {folder!r}
with open(folder + "/key", "rb") as file:
    key = file.read()
def holds(pid, what):
    try:
        with open(f"/proc/{{pid}}/{{what}}", "rb") as file:
            return key in file.read()
    except OSError:
        return False
pids = [name for name in os.listdir("/proc") if name.isdigit()]
seen = {{
    "tag": os.environ.get("RETINUE_CALL", ""),
    "spec_env": os.environ.get("MAIN_JOB", ""),
    "cwd": os.getcwd(),
    "args": sys.argv[1:],
    "keys": [[int(pid), what] for pid in pids for what in ("cmdline", "environ") if holds(pid, what)],
}}
fd = os.open(folder + "/seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.write(fd, json.dumps(seen).encode() + b"\\n")
os.execv({python!r}, [{python!r}, *sys.argv[1:]])
"""


class Sight(BaseModel):
    """What a command of the run saw of the machine. `keys`: where in /proc the key stood at that moment."""

    tag: str
    spec_env: str
    cwd: str
    args: tuple[str, ...]
    keys: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Finished:
    """A run of `retinue up` that is over. `pid` is what it was."""

    code: int
    output: str
    pid: int


@dataclass(slots=True)
class MainJob:
    """One run in folders of its own. Every `python3` of its commands first looks around, and then is what it is."""

    root: Path
    key: str

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def dir(self) -> Path:
        return self.root / "state" / "runs" / RUN

    @property
    def spec(self) -> Path:
        return self.root / "team.yaml"

    @property
    def script(self) -> Path:
        return self.root / "script.yaml"

    def write(self, faults: Sequence[Fault]) -> None:
        """The spec, the script, and the `python3` of the run."""
        self.spec.write_text(json.dumps(spec_of(faults, self.repo)))
        self.script.write_text(SCRIPT.read_text())
        (self.root / "watch").mkdir()
        (self.root / "watch" / "key").write_text(self.key)
        (self.root / "watch" / "bin").mkdir()
        witness = self.root / "watch" / "bin" / "python3"
        witness.write_text(_WITNESS.format(python=sys.executable, folder=str(self.root / "watch")))
        witness.chmod(0o755)

    def up(self, *args: str, **env: str) -> Finished:
        base = ("up", str(self.spec), "--run-id", RUN, "--state-dir", str(self.root / "state"))
        command = [sys.executable, "-m", "retinue", *base, "--ephemeral", "--trust", *args]
        process = subprocess.Popen(
            command,
            env=self.environment() | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        return Finished(process.returncode, output, process.pid)

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.root / 'watch' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "COLUMNS": "200",
        }

    def records(self) -> list[tuple[str, AnyRecord]]:
        found = (
            (record.writer, parse_record(record.kind, record.body)) for record in read_all(self.dir / "ledger.rlog")
        )
        return [(writer, record) for writer, record in found if record is not None]

    def sights(self) -> list[Sight]:
        return [Sight.model_validate_json(line) for line in (self.root / "watch" / "seen").read_text().splitlines()]

    def cluster(self) -> own.ClusterHandle:
        return own.ClusterHandle.model_validate_json((self.dir / "cluster.json").read_bytes())

    def clean_up(self) -> None:
        """Also after a run that went wrong."""
        if (self.dir / "cluster.json").exists() and (folder := self.cluster().folder) is not None:
            own.stop(force=True, key=folder.name)
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)

    def left(self) -> list[int]:
        """Processes that know of this run: by their arguments, environment or working directory."""
        mark = str(self.root).encode()
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
        return [pid for pid in pids if pid != os.getpid() and mark in _known_of(pid)]

    def clone_of_result(self) -> Path:
        clone = self.root / "clone"
        git(self.root, "clone", "--quiet", "--branch", f"retinue/{RUN}/result", str(self.repo), str(clone))
        return clone


def _known_of(pid: int) -> bytes:
    try:
        folder = Path(f"/proc/{pid}")
        link = os.fsencode(os.readlink(folder / "cwd"))
        return (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes() + link
    except OSError:
        return b""


def spec_of(faults: Sequence[Fault], repo: Path) -> dict[str, JsonValue]:
    """Tells each agent which tests fail, as a person who has run them would, and nothing else."""
    commands = [fault.command for fault in faults]
    tasks: list[dict[str, JsonValue]] = [
        {
            "id": f"mend-{number}",
            "subject": f"{fault.tests.rpartition('.')[2]} fails",
            "description": f"{PEERS[owner]}Run: {fault.command}",
            "owner": owner,
            "done_when": fault.command,
        }
        for number, (owner, fault) in enumerate(zip(MENDERS, faults, strict=True), 1)
    ]
    keep: dict[str, JsonValue] = {
        "id": "keep",
        "subject": "A test that keeps it mended",
        "description": f"After: ada\nRun: {NEW_TEST_COMMAND}",
        "owner": "cleo",
        "blocked_by": ["mend-1", "mend-3"],
        "done_when": NEW_TEST_COMMAND,
    }
    exact = [*commands, NEW_TEST_COMMAND, "git merge team/tip", "git add --all"]
    spec = {
        "version": 1,
        "name": "job",
        "repo": {"path": str(repo)},
        "model": "script:script.yaml",
        "permissions": {"mode": "acceptEdits", "allow": [f"Bash({command})" for command in exact]},
        "sandbox": {"writable": [str(repo.parent / "watch")]},
        "agents": {name: {"definition": "coder"} for name in MENDERS},
        "tasks": [*tasks, keep],
        "limits": {"turns": 100, "wall": "2m"},
        "env": {"MAIN_JOB": "mend"},
    }
    return TypeAdapter(dict[str, JsonValue]).validate_python(spec)


@contextmanager
def served(script: Path, env: Mapping[str, str]) -> Generator[str]:
    """`retinue model serve` as a process of its own; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "retinue", "model", "serve", str(script)],
        env=dict(env),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        yield next(word for word in said.split() if word.startswith("http://"))
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0
