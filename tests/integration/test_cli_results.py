"""`diff`, `land` and `clean` on a real repository, whose team left work behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from retinue.agents.boot import RuleSet
from retinue.orchestrator.ledger.lock import RunLock
from retinue.orchestrator.prepare import Launch, prepare_run
from retinue.orchestrator.spec.load import load_spec_text
from retinue.orchestrator.state.paths import RunDir
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Git
from retinue.orchestrator.workspaces.user_repo import UserRepo
from support.cli import Cli

RUN = "shop-run"
SPEC = """\
version: 1
name: shop
model: script:play.yaml
repo: {path: REPO, base: BASE}
agents:
  ada: {definition: coder, prompt: Work}
  ben: {definition: coder}
  cleo: {definition: coder, isolation: none}
"""
HOSTILE = "\x1b]0;owned\x07\x1b[2Jgone"


@dataclass
class Shop:
    """A repository of a user and one run of a team on it."""

    repo: Path
    run: RunDir
    cli: Cli

    def git(self, *args: str, cwd: Path | None = None) -> str:
        done = subprocess.run(["git", *args], cwd=cwd or self.repo, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def worktree(self, agent: str) -> Path:
        return self.run.root / "wt" / f"{agent}~1"

    def commits(self, agent: str, file: str, text: str) -> str:
        """The agent writes a file and commits it."""
        where = self.worktree(agent)
        (where / file).write_text(text)
        self.git("add", "-A", cwd=where)
        self.git("-c", "commit.gpgsign=false", "commit", "-q", "-m", f"{agent} was here", cwd=where)
        return self.git("rev-parse", "HEAD", cwd=where)

    def lands(self, agent: str, sha: str) -> None:
        """The work becomes the tip, and the user's repository shows it."""

        async def land() -> None:
            git = Git()
            depot = await Depot.open(git, self.run.root)
            await depot.take(f"{agent}~1", depot.workspace(f"{agent}~1").branch, sha)
            await depot.advance_tip(await depot.tip(), sha)
            await (await UserRepo.open(git, self.repo)).mirror_result(depot.paths.depot, RUN, sha, None)

        asyncio.run(land())


def launch(repo: Path, cli: Cli, base: str = "head") -> Shop:
    loaded = load_spec_text(SPEC.replace("REPO", str(repo)).replace("BASE", base), env={})
    made = Launch(run=RUN, day="2025-06-15", state=cli.state, env=dict(os.environ), rules=RuleSet())
    return Shop(repo, asyncio.run(prepare_run(loaded, made)), cli)


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return Cli(tmp_path / "state", capsys)


@pytest.fixture
def repo(tmp_path: Path, cli: Cli) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    (made / "money.py").write_text("rate = 1\n")
    script = "git init -q -b main && git config user.name U && git config user.email u@home && git add -A"
    subprocess.run(["bash", "-c", f"{script} && git commit -q -m start"], cwd=made, check=True)
    return made


@pytest.fixture
def shop(repo: Path, cli: Cli) -> Shop:
    return launch(repo, cli)


# --- diff -------------------------------------------------------------------------------------------------------------


def diff(shop: Shop, *args: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "retinue", "diff", RUN, *args, "--state-dir", str(shop.cli.root)]
    return subprocess.run(command, capture_output=True, check=False)


def test_a_run_without_merged_work_has_an_empty_diff_and_says_so(shop: Shop) -> None:
    done = diff(shop)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"has changed nothing yet" in done.stderr


def test_the_diff_of_a_run_is_a_patch_that_gives_the_result(shop: Shop, tmp_path: Path) -> None:
    (shop.worktree("ada") / "logo.bin").write_bytes(bytes(range(256)))
    shop.lands("ada", shop.commits("ada", "money.py", f"rate = 2  # café {HOSTILE}\n"))
    patch = diff(shop)
    assert patch.returncode == 0
    copy = tmp_path / "copy"
    shop.git("clone", "-q", str(shop.repo), str(copy))
    subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=copy, input=patch.stdout, check=True)
    assert (copy / "money.py").read_bytes() == (shop.worktree("ada") / "money.py").read_bytes()
    assert (copy / "logo.bin").read_bytes() == bytes(range(256))


def test_stat_names_the_files_only(shop: Shop) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    done = diff(shop, "--stat")
    assert done.stdout.startswith(b" money.py | 2 +-")


def test_the_diff_of_an_agent_holds_what_it_has_not_committed(shop: Shop) -> None:
    shop.commits("ada", "money.py", "rate = 2\n")
    (shop.worktree("ada") / "new.py").write_text("new = True\n")
    before = shop.git("status", "--porcelain", cwd=shop.worktree("ada"))
    done = diff(shop, "ada")
    assert b"+rate = 2" in done.stdout
    assert b"+new = True" in done.stdout
    assert shop.git("status", "--porcelain", cwd=shop.worktree("ada")) == before
    assert b"has changed nothing yet" in diff(shop, "ben").stderr


def test_looking_at_an_agent_moves_no_ref_and_leaves_no_file(shop: Shop) -> None:
    (shop.worktree("ada") / "new.py").write_text("new = True\n")
    depot = shop.run.root / "depot.git"
    refs, files = shop.git("for-each-ref", cwd=depot), sorted((depot / "retinue").iterdir())
    assert diff(shop, "ada").returncode == 0
    assert shop.git("for-each-ref", cwd=depot) == refs
    assert sorted((depot / "retinue").iterdir()) == files


def test_an_agent_that_has_no_worktree_is_refused_with_those_that_have(shop: Shop) -> None:
    for name in ("cleo", "nobody"):
        done = diff(shop, name)
        assert done.returncode == 2
        assert b"ada, ben" in done.stderr


def test_a_diff_on_a_terminal_shows_no_escape_of_the_work(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", f"rate = 2{HOSTILE}\n"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    answer = shop.cli.at("diff", RUN)
    assert answer.code == 0
    assert "+rate = 2" in answer.out
    assert "\x1b]0" not in answer.out
    assert "\x1b[2J" not in answer.out


def test_a_run_whose_agents_wrote_in_the_checkout_has_no_diff(cli: Cli, tmp_path: Path) -> None:
    loaded = load_spec_text(
        "version: 1\nname: shop\nmodel: script:play.yaml\n"
        f"repo: {{path: {tmp_path}}}\nagents: {{cleo: {{isolation: none, prompt: Work}}}}\n",
        env={},
    )
    made = Launch(run=RUN, day="2025-06-15", state=cli.state, env=dict(os.environ), rules=RuleSet())
    asyncio.run(prepare_run(loaded, made))
    for command in ("diff", "land"):
        answer = cli.at(command, RUN)
        assert answer.code == 2
        assert answer.err.startswith("retinue: ")


# --- land -------------------------------------------------------------------------------------------------------------


def test_landing_merges_the_result_into_the_checkout(shop: Shop) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    answer = shop.cli.at("land", RUN)
    assert answer.code == 0
    assert answer.lines[-1] == f"landed in {shop.repo}"
    assert (shop.repo / "money.py").read_text() == "rate = 2\n"
    assert shop.git("status", "--porcelain") == ""


def test_landing_a_live_run_is_refused(shop: Shop) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    with RunLock.acquire(shop.run.lock):
        answer = shop.cli.at("land", RUN)
    assert answer.code == 2
    assert f"retinue stop {RUN}" in answer.err
    assert (shop.repo / "money.py").read_text() == "rate = 1\n"


def test_landing_without_a_result_is_refused(shop: Shop) -> None:
    answer = shop.cli.at("land", RUN)
    assert answer.code == 2
    assert "has no result" in answer.err


def test_a_conflict_is_left_to_the_user_with_the_way_back(shop: Shop) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    (shop.repo / "money.py").write_text("rate = 3\n")
    shop.git("commit", "-q", "-a", "-m", "mine")
    answer = shop.cli.at("land", RUN)
    assert answer.code == 2
    assert "git merge --abort" in answer.err
    shop.git("merge", "--abort")
    assert (shop.repo / "money.py").read_text() == "rate = 3\n"


def test_a_run_that_began_with_uncommitted_changes_lands_on_top_of_them(repo: Path, cli: Cli) -> None:
    (repo / "notes.txt").write_text("mine\n")
    shop = launch(repo, cli, "worktree")
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    answer = cli.at("land", RUN)
    assert answer.code == 0
    assert (repo / "money.py").read_text() == "rate = 2\n"
    assert shop.git("status", "--porcelain").splitlines() == ["M money.py", "?? notes.txt"]


# --- clean ------------------------------------------------------------------------------------------------------------


def test_a_cleaned_run_keeps_all_work_and_comes_back(shop: Shop) -> None:
    shop.lands("ada", shop.commits("ada", "money.py", "rate = 2\n"))
    (shop.worktree("ben") / "draft.py").write_text("draft = True\n")
    answer = shop.cli.at("clean", RUN)
    assert answer.code == 0
    assert answer.lines == [
        f"{RUN}: moved to {shop.cli.state.trash / RUN}",
        f"  its result stays on the branch retinue/{RUN}/result",
    ]
    assert not shop.run.root.exists()
    assert "refs/retinue" not in shop.git("for-each-ref")
    assert shop.cli.at("clean", "--undo", RUN).code == 0
    done = diff(shop)
    assert b"+rate = 2" in done.stdout
    assert b"draft = True" in diff(shop, "ben").stdout


def test_a_run_whose_repository_is_gone_is_moved_as_it_is(shop: Shop, tmp_path: Path) -> None:
    shop.commits("ada", "money.py", "rate = 2\n")
    shop.repo.rename(tmp_path / "elsewhere")
    answer = shop.cli.at("clean", RUN)
    assert answer.code == 0
    assert "which is gone" in answer.out
    assert not shop.run.root.exists()
    (tmp_path / "elsewhere").rename(shop.repo)
    assert shop.cli.at("clean", "--undo", RUN).code == 0
    assert b"+rate = 2" in diff(shop, "ada").stdout
