"""Verification: the checks see exactly the candidate, and whatever they do to their worktree is undone."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.orchestrator.merging.git_merge import build_candidate
from retinue.orchestrator.merging.verify import Check, CommandOutcome, verify
from retinue.orchestrator.workspaces.bare import GuardTripped
from retinue.orchestrator.workspaces.git import Identity
from retinue.tools.errors import EnvironmentProblem


@dataclass
class Shell:
    env: dict[str, str]
    ran: list[str] = field(default_factory=list)

    async def run(self, command: str, cwd: Path, timeout_s: float) -> CommandOutcome:
        self.ran.append(command)
        done = subprocess.run(
            ["bash", "-c", command], cwd=cwd, env=self.env, capture_output=True, text=True, check=False
        )
        return CommandOutcome(done.returncode, done.stdout + done.stderr, timed_out=command == "sleep")


async def _candidates(world, *files: dict[str, str]):
    depot = await world.depot()
    await world.agent(depot, "ada")
    made = []
    for each in files:
        sha = await world.hand_in(depot, "ada", each)
        candidate = await build_candidate(
            depot, await depot.tip(), sha, strategy="merge", message="m", author=Identity("A", "a@b")
        )
        made.append(candidate.sha)
    return depot, made


def _check(command: str, name: str = "done_when") -> Check:
    return Check(name, command, 5.0)


async def test_checks_run_in_order_in_the_candidate_until_one_says_no(world):
    depot, [sha] = await _candidates(world, {"new.txt": "new\n"})
    shell = Shell(world.env)
    checks = [_check("cat new.txt"), _check("echo why; exit 3", "merge.verify"), _check("true")]
    verdict = await verify(depot, sha, checks, shell)
    assert not verdict.ok
    assert verdict.reason == "merge.verify failed with exit code 3: echo why; exit 3"
    assert verdict.output == "why\n"
    assert shell.ran == ["cat new.txt", "echo why; exit 3"]
    assert (await verify(depot, sha, [_check(f'test "$(git rev-parse HEAD)" = {sha}')], shell)).ok
    assert (await verify(depot, sha, [], shell)).ok


async def test_a_check_that_takes_too_long_says_so(world):
    depot, [sha] = await _candidates(world, {"new.txt": "new\n"})
    verdict = await verify(depot, sha, [_check("sleep")], Shell(world.env))
    assert verdict.reason == "done_when did not finish within 5 s: sleep"


MESS = {
    "changed, new and deleted files": "echo x > lines.txt; rm src/app.py; mkdir -p a/b; echo x > a/b/c",
    "a commit and another branch": "git checkout -qb x; git -c user.name=n -c user.email=e commit -qm x --allow-empty",
    "a nested repository": "git init -q nested; touch nested/x",
    "a replaced .git": "rm .git; git init -q .",
    "a lost .git": "rm .git",
    "a broken index": "echo junk > $(git rev-parse --git-path index)",
    "a stale lock": "touch $(git rev-parse --git-path index.lock)",
    "a lost worktree": "rm -rf ../verify",
    "a redirected common folder": "echo /elsewhere > $(git rev-parse --git-path commondir)",
    "a configuration of its own": "echo > $(git rev-parse --git-dir)/config.worktree",
    "a merge left over": "D=$(git rev-parse --git-dir); touch $D/MERGE_HEAD; mkdir $D/rebase-merge",
    "files hidden from git": "git update-index --assume-unchanged lines.txt; echo x > lines.txt",
    "files declared absent": "git update-index --skip-worktree src/app.py; rm src/app.py",
}


@pytest.mark.parametrize("mess", list(MESS))
async def test_the_next_candidate_is_checked_out_exactly_whatever_the_last_check_did(world, mess):
    depot, [first, second] = await _candidates(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    shell = Shell(world.env)
    await verify(depot, first, [_check(MESS[mess])], shell)
    verdict = await verify(depot, second, [_check('test -z "$(git status --porcelain)"')], shell)
    assert (verdict.ok, verdict.output) == (True, "")
    listing = world.sh("git rev-parse HEAD && git status --porcelain && ls -A . src", depot.paths.verify).split()
    assert listing == [second, ".:", ".git", ".gitignore", "lines.txt", "one.txt", "src", "two.txt", "src:", "app.py"]
    assert (depot.paths.verify / "lines.txt").read_text() == (world.user / "lines.txt").read_text()


async def test_set_up_runs_once_per_worktree_and_what_it_made_stays(world):
    depot, [first, second] = await _candidates(world, {"one.txt": "1\n"}, {"two.txt": "2\n"})
    shell = Shell(world.env)
    setup = [_check("echo made > setup.log", "setup")]
    assert (await verify(depot, first, [_check("cat setup.log")], shell, setup=setup)).ok
    assert (await verify(depot, second, [_check("cat setup.log two.txt")], shell, setup=setup)).ok
    assert shell.ran.count("echo made > setup.log") == 1


async def test_a_set_up_that_fails_is_not_blamed_on_the_work_and_runs_again(world):
    depot, [sha] = await _candidates(world, {"one.txt": "1\n"})
    shell = Shell(world.env)
    with pytest.raises(EnvironmentProblem, match=r"setup failed with exit code 1"):
        await verify(depot, sha, [_check("true")], shell, setup=[_check("false", "setup")])
    assert (await verify(depot, sha, [_check("cat x.log")], shell, setup=[_check("touch x.log", "setup")])).ok


async def test_included_files_are_there_for_the_checks_too(world):
    world.write(".env", "KEY=1\n")
    world.write(".worktreeinclude", ".env\n")
    depot, [sha] = await _candidates(world, {"one.txt": "1\n"})
    assert (await verify(depot, sha, [_check("grep KEY .env")], Shell(world.env))).ok


async def test_a_check_that_changes_the_depots_configuration_stops_the_queue(world):
    depot, [sha] = await _candidates(world, {"one.txt": "1\n"})
    shell = Shell(world.env)
    await verify(depot, sha, [_check("git config core.fsmonitor evil")], shell)
    with pytest.raises(GuardTripped, match="config"):
        await verify(depot, sha, [_check("true")], shell)


async def test_the_users_checkout_and_the_tip_are_untouched_by_verification(world):
    depot, [sha] = await _candidates(world, {"one.txt": "1\n"})
    before = world.picture()
    await verify(depot, sha, [_check("true")], Shell(world.env))
    assert world.picture() == before
    assert await depot.tip() == depot.facts.base_sha
