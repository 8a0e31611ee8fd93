"""Runs of the real command line on real clusters, each in folders of its own, with nothing left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from retinue.agents.model.prices import cost_usd
from retinue.orchestrator.ledger.parse import parse_record
from retinue.orchestrator.ledger.reader import read_all
from retinue.orchestrator.view.run_state import RunView


@dataclass
class Bench:
    """A place for runs: state, cluster folder and repository. Short paths, because Ray's sockets are in it."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.root / "retinue"

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    def retinue(
        self, *args: str, timeout: float = 180, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "retinue", *args],
            cwd=self.root,
            env={**self.env, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        """The same without waiting; in a session of its own, as a terminal would have it."""
        return subprocess.Popen(
            [sys.executable, "-m", "retinue", *args],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run_dir(self, run: str) -> Path:
        return self.state / "runs" / run

    def view(self, run: str) -> RunView:
        view = RunView(cost_usd)
        for record in read_all(self.run_dir(run) / "ledger.rlog"):
            typed = parse_record(record.kind, record.body)
            if typed is not None:
                view.apply(record.writer, record.at, typed)
        return view

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", "-C", str(self.repo), *args], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def make_repo(self, files: Mapping[str, str]) -> None:
        self.repo.mkdir()
        for name, text in files.items():
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "user")
        self.git("config", "user.email", "user@example.invalid")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "start")

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this bench: found by its folder in command line or environment."""
        mark = str(self.root)
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                texts = (*process.cmdline(), *process.environ().values())
                if process.pid != os.getpid() and any(mark in text for text in texts):
                    found.append(process)
            except psutil.Error:
                continue
        return found


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench that is taken down whole, whatever happens on it."""
    root = Path(tempfile.mkdtemp(prefix="rt-", dir="/tmp"))
    (root / "x").mkdir(mode=0o700)
    kept = ("PATH", "HOME", "LANG", "TZ")
    env = {name: value for name, value in os.environ.items() if name in kept}
    env |= {"XDG_RUNTIME_DIR": str(root / "x"), "XDG_STATE_HOME": str(root), "NO_COLOR": "1", "COLUMNS": "120"}
    made = Bench(root, env)
    try:
        yield made
    finally:
        for process in made.processes():
            try:
                process.kill()
            except psutil.Error:
                continue
        shutil.rmtree(root, ignore_errors=True)
