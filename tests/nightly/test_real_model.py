"""A whole team on real models, served on this machine: the real client on the wire, and whatever small models make up.

What is checked is the protocol. The models are tiny, so that the run may well end as failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TextIO

import psutil
import pytest

from support.invariants import violations
from support.model_calls import OUTCOMES, Account, account_of
from support.model_servers import LLAMA, NEEDLE, free_port, served

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(1_800)]

DEADLINE_S = 900
GONE_S = 60
LEAST_REQUESTS = 50
REQUESTS_BETWEEN = 2
SHOWN = 8
ROOT = Path(__file__).parents[2]
RUN = "real"

SPEC = """\
version: 1
name: real
repo: {{path: {repo}}}
permissions:
  mode: acceptEdits
agents:
  asks:
    definition: {clerk}
    model: {{use: anthropic:needle3, base_url: {needle}, max_output_tokens: 256}}
    tools: {{allow: [Read, Grep, Bash, SendMessage]}}
    limits: {{turns: 40}}
  reads:
    definition: {clerk}
    replicas: 3
    model: {{use: anthropic:smollm2, base_url: {guarded}, max_output_tokens: 96}}
    tools: {{allow: [Read, Grep, Edit, SendMessage, TaskUpdate]}}
    limits: {{turns: 25}}
  guesses:
    definition: {clerk}
    replicas: 4
    model: {{use: anthropic:smollm2-free, base_url: {free}, max_output_tokens: 96}}
    tools: {{allow: [Read, Grep, Edit, SendMessage, TaskUpdate]}}
    limits: {{turns: 25}}
tasks:
  - {{id: money, owner: asks, subject: Rounding, description: Read shelf/money.py and shelf/stock.py}}
  - {{id: report, owner: reads-1, subject: Report, description: Read shelf/report.py}}
  - {{id: words, owner: reads-2, subject: Words, description: Find round}}
  - {{id: names, owner: guesses-1, subject: Names, description: Read shelf/money.py}}
  - {{id: tests, owner: guesses-2, subject: Tests, description: Find assertEqual}}
  - {{id: stock, owner: reads-3, subject: Stock, description: Read shelf/stock.py}}
  - {{id: sizes, owner: guesses-3, subject: Sizes, description: Find len}}
  - {{id: dates, owner: guesses-4, subject: Dates, description: Read README.md}}
limits: {{usd: none, turns: 250, wall: 13m}}
"""
CLERK = """\
---
name: clerk
description: Looks things up.
---
You look things up in a small repository with your tools, one thing at a time.
"""
MAIL = (
    ("*", "Read tests/test_money.py"),
    ("asks", "Run the command: git status"),
    ("*", "Find unittest"),
    ("guesses-1", "Call Sum with 1 and 2"),
    ("asks", "Send a message to reads-1: the price is wrong"),
    ("*", "Read shelf/report.py"),
    ("reads-2", "Read /etc/hostname"),
    ("guesses-2", "Replace 1 with 2 in shelf/money.py"),
    ("*", "Find price"),
)


REPORT = """\
# A team on real models, {day}

One run of eight agents on a repository of a few files, each model behind the Messages API on loopback, the real client
in front of it. Measured by `tests/nightly/test_real_model.py` (`make nightly`), read off the run's ledger.

{requests} requests in {seconds:.0f} s on {cpus} cores, start and end of the cluster included.

- Protocol errors (a stream that broke, a request without a message, a call without its result): {protocol}
- Calls that were wrong in themselves: {wrong}; of these without an error as their result, or run: {silent}
- Of the malformed calls, {known} named a tool that there is; the others were answered as calls of an unknown tool
- The run ended by itself, as {phase}, and left no process.

{table}

- needle3: a model that is trained to call tools, behind a server of the tests; its engine counts no tokens, so its
  numbers are estimates of four characters each.
- smollm2: SmolLM2-135M on llama.cpp's own server, which lets it write only calls that fit their schema.
- smollm2-free: the same weights without that, behind a server of the tests that passes on what the model wrote. It
  begins a turn with an opened call, since the model alone seldom would.
- Versions: {versions}.

The first {shown} wrong calls, and what the model was told:

{examples}

## What this does not show
- That work gets done: models of this size end their tasks at random, so the run is allowed to fail.
- Long conversations, thinking blocks, a cache that is billed, rate limits: no server here has them.
- Speed: the engines share the cores with the run, and wait for each other when there is other work.
"""


@dataclass(frozen=True)
class Scene:
    """Folders of one run. The path is short, since the cluster's sockets lie below it."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def ledger(self) -> Path:
        return self.state / "runs" / RUN / "ledger.rlog"

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.root / "r"),
            "ANTHROPIC_API_KEY": "of-nobody",
        }

    def retinue(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "retinue", *args, "--state-dir", str(self.state)]

    def left_running(self) -> list[str]:
        """Processes that have something to do with this scene."""
        found: list[str] = []
        for process in psutil.process_iter(["pid", "cmdline", "environ"]):
            told = [*(process.info["cmdline"] or ()), *(process.info["environ"] or {}).values()]
            if any(str(self.root) in text for text in told):
                found.append(f"{process.info['pid']} {process.info['cmdline']}")
        return found

    def all_gone(self) -> bool:
        """The cluster of a run ends after the run, by itself."""
        until = time.monotonic() + GONE_S
        while self.left_running():
            if time.monotonic() > until:
                return False
            time.sleep(0.5)
        return True


@pytest.fixture
def scene() -> Generator[Scene]:
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        made = Scene(Path(folder))
        (made.root / "r").mkdir(mode=0o700)
        (made.root / "clerk.md").write_text(CLERK)
        _repository(made.root / "shelf")
        yield made


def _repository(at: Path) -> None:
    subprocess.run(["cp", "-R", ROOT / "configs" / "demo" / "repo", at], check=True)
    git = ["git", "-C", str(at), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "A small shop"]):
        subprocess.run([*git, *words], check=True)


def test_a_team_on_real_models_never_breaks_the_protocol(scene: Scene) -> None:
    port = str(free_port())
    with served(LLAMA, "smollm2.py", port) as llama, served(NEEDLE, "needle3.py") as needle:
        spec = scene.root / "team.yaml"
        where = {"repo": scene.root / "shelf", "clerk": scene.root / "clerk.md", **llama, **needle}
        spec.write_text(SPEC.format(**where))
        began = time.monotonic()
        code, told = _run(scene, spec)
        seconds = time.monotonic() - began
    account = account_of(scene.ledger)
    report = _report(account, seconds)
    print(report)
    assert code in (0, 1), told
    assert account.phase in ("done", "failed"), told
    assert scene.all_gone(), scene.left_running()
    assert account.requests >= LEAST_REQUESTS
    assert all(account.models[f"anthropic:{name}"].requests for name in ("needle3", "smollm2", "smollm2-free"))
    assert violations(scene.ledger) == []
    assert account.unpaired == []
    assert account.broken == []
    assert account.unanswered == []
    assert account.without_usage == []
    assert account.wrong_calls, "no model made a wrong call; this run shows nothing about them"
    assert account.silent_errors == []
    (ROOT / "docs" / "results").mkdir(exist_ok=True)
    (ROOT / "docs" / "results" / f"real-model-{date.today()}.md").write_text(report)


def _run(scene: Scene, spec: Path) -> tuple[int, str]:
    """The run from its launch to its own end, with mail from its human while it lives. (exit code, what it said)"""
    with (scene.root / "told").open("w+") as told:
        process = subprocess.Popen(
            scene.retinue("up", str(spec), "--ephemeral", "--trust", "--run-id", RUN),
            env=scene.env,
            cwd=scene.root,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
        )
        try:
            _write_to_the_team(scene, process)
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the run did not end by itself within {DEADLINE_S} s:\n{_end_of(told)}")
        finally:
            if process.poll() is None:
                subprocess.run(scene.retinue("down", RUN), env=scene.env, timeout=60, check=False)
                process.send_signal(signal.SIGINT)
                process.wait(60)
        return process.returncode, _end_of(told)


def _write_to_the_team(scene: Scene, process: subprocess.Popen[bytes]) -> None:
    """One message after the other, so that they wake agents and are not read at once; over when the run is."""
    seen = 0
    for to, text in MAIL:
        while _requests(scene) < seen + REQUESTS_BETWEEN:
            if _is_over(process):
                return
        seen = _requests(scene)
        command = scene.retinue("send", RUN, to, text)
        subprocess.run(command, env=scene.env, cwd=scene.root, capture_output=True, timeout=60, check=False)


def _requests(scene: Scene) -> int:
    return account_of(scene.ledger).requests if scene.ledger.exists() else 0


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(0.5)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_of(told: TextIO) -> str:
    told.seek(0)
    return told.read()[-4_000:]


def _report(account: Account, seconds: float) -> str:
    head = ("model", "requests", "turns", *OUTCOMES, "tokens in", "tokens out")
    rows = [_row(head), _row(("---",) * len(head))]
    for name, count in sorted(account.models.items()):
        usage = count.usage
        numbers = (count.requests, count.turns, *(count.calls[outcome] for outcome in OUTCOMES))
        tokens = (usage.input + usage.cache_read + usage.cache_write, usage.output)
        rows.append(_row((name, *(f"{number:,}" for number in (*numbers, *tokens)))))
    wrong = [f"- {line}" for line in account.wrong_calls[:SHOWN]]
    return REPORT.format(
        day=date.today(),
        requests=account.requests,
        seconds=seconds,
        phase=account.phase,
        protocol=len(account.broken) + len(account.unanswered) + len(account.unpaired),
        wrong=len(account.wrong_calls),
        silent=len(account.silent_errors),
        known=account.malformed_for_a_tool,
        versions=f"{LLAMA.versions()}; {NEEDLE.versions()}",
        cpus=os.cpu_count(),
        table="\n".join(rows),
        examples="\n".join(wrong),
        shown=len(wrong),
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
