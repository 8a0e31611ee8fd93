"""What is refused before any cluster is started, and what a launch that is called off leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from retinue.orchestrator.cli import up
from retinue.orchestrator.cluster.own import ClusterHandle
from retinue.tools.errors import EnvironmentProblem
from support.cli import Cli
from support.past_runs import PastRun, shop_done

SPEC = """\
version: 1
name: shop
model: MODEL
agents:
  ada: {definition: coder, prompt: Mend it}
"""
OWN_SERVER = "{use: 'anthropic:any-name', base_url: 'http://127.0.0.1:1'}"


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Cli(tmp_path / "state", capsys)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> list[up.Place]:
    """Every cluster that a command wanted. None is started."""
    wanted: list[up.Place] = []

    def ensure(place: up.Place) -> ClusterHandle:
        wanted.append(place)
        return ClusterHandle(address="127.0.0.1:1", env={})

    monkeypatch.setattr(up, "ensure_cluster", ensure)
    return wanted


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    monkeypatch.chdir(made)
    (made / "play.yaml").write_text("agents:\n  '*':\n    - say: hello\n")
    write(made, "script:play.yaml")
    git(made, "init", "-q", "-b", "main")
    git(made, "add", "-A")
    git(made, "-c", "user.name=U", "-c", "user.email=u@home", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x")
    return made


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True).stdout


def write(repo: Path, model: str, more: str = "") -> None:
    (repo / "team.yaml").write_text(SPEC.replace("MODEL", model) + more)


def refs(repo: Path) -> list[str]:
    return git(repo, "for-each-ref", "--format=%(refname)").split()


# --- keys and prices --------------------------------------------------------------------------------------------------


def test_a_model_without_a_key_is_refused_before_a_cluster(cli: Cli, repo: Path, clusters: list[up.Place]) -> None:
    write(repo, "anthropic:claude-sonnet-5-5")
    for command in (("up", "team.yaml"), ("run", "hi", "--model", "anthropic:claude-sonnet-5-5")):
        answer = cli.at(*command)
        assert (answer.code, answer.out) == (3, "")
        assert "set ANTHROPIC_API_KEY" in answer.err
    assert clusters == []
    assert not cli.state.all()


def test_looking_at_a_spec_without_a_key_warns(cli: Cli, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repo, "anthropic:claude-sonnet-5-5")
    for command in ("validate", "plan"):
        answer = cli(command, "team.yaml")
        assert answer.code == 0
        assert "warning: " in answer.err
        assert "set ANTHROPIC_API_KEY" in answer.err
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert "ANTHROPIC_API_KEY" not in cli("validate", "team.yaml").err


def test_a_limit_in_dollars_needs_a_known_price(cli: Cli, repo: Path, clusters: list[up.Place]) -> None:
    write(repo, OWN_SERVER)
    for command in (("up", "team.yaml", "--trust", "--state-dir", cli.root), ("validate", "team.yaml")):
        answer = cli(*command)
        assert answer.code == 2
        assert (
            "limits.usd: the price of anthropic:any-name is not known; write usd: none, and limits.tokens to have a "
            "limit" in answer.err
        )
    assert clusters == []
    write(repo, OWN_SERVER, "limits: {usd: none}\n")
    assert cli("validate", "team.yaml").code == 0
    text = (repo / "team.yaml").read_text().replace("prompt: Mend it", "prompt: Mend it, limits: {usd: 1}")
    (repo / "team.yaml").write_text(text)
    assert "agents.ada.limits.usd: the price of anthropic:any-name is not known" in cli("validate", "team.yaml").err


# --- names, places, prompts -------------------------------------------------------------------------------------------


def test_a_name_that_is_taken_is_refused_before_a_cluster(cli: Cli, repo: Path, clusters: list[up.Place]) -> None:
    shop_done(cli.state, "demo")
    for command in (("up", "team.yaml"), ("run", "hi", "--model", "script:play.yaml")):
        answer = cli.at(*command, "--run-id", "demo")
        assert answer.code == 2
        assert "run demo exists already" in answer.err
    assert clusters == []


def test_run_speaks_of_its_own_flags(
    cli: Cli, repo: Path, tmp_path: Path, clusters: list[up.Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = cli.at("run", " ", "--model", "script:play.yaml")
    assert (empty.code, "PROMPT is empty" in empty.err) == (2, True)
    bare = tmp_path / "bare"
    bare.mkdir()
    monkeypatch.chdir(bare)
    outside = cli.at("run", "hi", "--model", "script:play.yaml")
    assert outside.code == 2
    assert "--in-place" in outside.err
    assert "isolation" not in outside.err
    git(bare, "init", "-q")
    unborn = cli.at("run", "hi", "--model", "script:play.yaml")
    assert (unborn.code, "no commit yet" in unborn.err, "--in-place" in unborn.err) == (2, True, True)
    assert clusters == []


# --- Ctrl-C during a launch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True], ids=["while the run is made", "while the cluster comes up"])
def test_ctrl_c_during_a_launch_leaves_nothing(
    cli: Cli, repo: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    plan = cli.state.runs / "demo" / "plan.json"
    seen: list[bool] = []

    def ensure(place: up.Place) -> ClusterHandle:
        until = time.monotonic() + 30
        while late and not plan.exists() and time.monotonic() < until:
            time.sleep(0.01)
        seen.append(plan.exists())
        os.kill(os.getpid(), signal.SIGINT)
        until = time.monotonic() + 30
        while plan.parent.exists() and time.monotonic() < until:
            time.sleep(0.01)
        return ClusterHandle(address="127.0.0.1:1", env={}, ephemeral=place.ephemeral)

    monkeypatch.setattr(up, "ensure_cluster", ensure)
    answer = cli.at("up", "team.yaml", "--run-id", "demo", "--ephemeral")
    assert seen == [late]
    assert (answer.code, answer.out) == (130, "")
    assert "nothing was started" in answer.err
    assert refs(repo) == ["refs/heads/main"]
    assert not cli.state.all()


def test_a_cluster_that_does_not_answer_leaves_no_run(cli: Cli, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: up.Place) -> ClusterHandle:
        raise EnvironmentProblem(f"no cluster for {place.address}")

    monkeypatch.setattr(up, "ensure_cluster", refuse)
    answer = cli.at("up", "team.yaml", "--run-id", "demo")
    assert (answer.code, "no cluster" in answer.err) == (3, True)
    assert refs(repo) == ["refs/heads/main"]
    assert not cli.state.all()


# --- runs that are over -----------------------------------------------------------------------------------------------


def test_orders_to_a_run_that_has_ended_say_how_it_ended(cli: Cli) -> None:
    PastRun.make(cli.state, "over").begin("ada").phase("failed", "out of budget").close()
    PastRun.make(cli.state, "paused").begin("ada").phase("stopped").close()
    for command in (("stop", "over"), ("send", "over", "ada", "hello")):
        answer = cli.at(*command)
        assert answer.code == 2
        assert "run over has ended (failed: out of budget)" in answer.err
        assert "resume" not in answer.err
    assert "retinue resume paused" in cli.at("stop", "paused").err
