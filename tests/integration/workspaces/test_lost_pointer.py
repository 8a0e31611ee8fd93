"""An agent removes or replaces its worktree's `.git` while the run lies inside a repository of the user's."""

from __future__ import annotations

import subprocess

import pytest

from retinue.agents.boot import AgentBoot, WorkspaceBoot
from retinue.orchestrator.merging.submission import (
    Sync,
    parse_submission,
    parse_sync,
    place_of,
    submission_script,
    sync_with_tip,
)
from retinue.orchestrator.run_files import PrivateEnv, RunFiles
from retinue.orchestrator.state.paths import RunDir
from retinue.tools.errors import ToolError

OUTSIDE = "git rev-parse HEAD; git status --porcelain --ignored; git ls-files --stage"
LOSSES = [
    "rm .git",
    "rm .git; git init -q -b main; git add -A; git commit -q -m mine",
    "rm .git; ln -s {top}/.git .git",
]


@pytest.fixture
def enclosed(world):
    """The folder of everything, the run's included, is a repository with something staged and something not."""
    world.sh(
        "git init -q -b main && git config user.name User && git config user.email user@home && echo 1 > dotfile"
        " && git add dotfile && git commit -q -m dotfiles && echo 2 > dotfile && git add dotfile && echo 3 > dotfile",
        world.top,
    )
    return world


def _picture(world):
    return world.sh(OUTSIDE, world.top), (world.top / ".git/index").read_bytes(), (world.top / "dotfile").read_text()


def _remedy(text):
    return text.splitlines()[0].split("Put it back with: ")[1]


@pytest.mark.parametrize("loss", LOSSES)
async def test_work_is_not_handed_in_to_another_repository_and_the_remedy_puts_it_right(enclosed, loss):
    depot = await enclosed.depot()
    ada = await enclosed.agent(depot, "ada")
    first = enclosed.commit({"first": "1"}, where=ada.path)
    enclosed.write("new.txt", "new\n", where=ada.path)
    enclosed.sh(
        "git config --global user.name n; git config --global user.email e;" + loss.format(top=enclosed.top), ada.path
    )
    before = _picture(enclosed)
    script = submission_script("Do it", place_of(ada))
    with pytest.raises(ToolError, match="removed or replaced") as raised:
        parse_submission(enclosed.sh(script, ada.path, check=False))
    assert _picture(enclosed) == before
    enclosed.sh(_remedy(str(raised.value)), ada.path)
    handed = parse_submission(enclosed.sh(script, ada.path, check=False))
    assert (handed.branch, handed.committed) == (ada.branch, True)
    assert enclosed.sh("git rev-parse HEAD^ && git show HEAD:new.txt", ada.path) == f"{first}\nnew"
    await depot.take("ada", handed.branch, handed.sha)
    assert _picture(enclosed) == before


@pytest.mark.parametrize("loss", LOSSES)
async def test_another_repository_does_not_move_to_the_tip(enclosed, loss):
    depot = await enclosed.depot()
    ada, _ = await enclosed.agent(depot, "ada"), await enclosed.agent(depot, "bob")
    tip = await enclosed.hand_in(depot, "bob", {"bob.txt": "bob\n"})
    await depot.advance_tip(depot.facts.base_sha, tip)
    await depot.publish_tip()
    enclosed.sh(
        "git config --global user.name n; git config --global user.email e;" + loss.format(top=enclosed.top), ada.path
    )
    before = _picture(enclosed)
    sync = sync_with_tip(tip, place_of(ada), base=ada.base_sha, last_merged=None)
    assert isinstance(sync, Sync)
    refused = parse_sync(enclosed.sh(sync.script, ada.path, check=False))
    assert not refused.moved
    assert _picture(enclosed) == before
    enclosed.sh(_remedy(refused.text), ada.path)
    assert parse_sync(enclosed.sh(sync.script, ada.path, check=False)).moved


async def test_a_repository_that_names_another_worktree_hands_nothing_in(enclosed):
    ada = await enclosed.agent(await enclosed.depot(), "ada")
    enclosed.write("new.txt", "new\n", where=ada.path)
    enclosed.sh(
        "git config extensions.worktreeConfig true; git config --worktree core.bare false;"
        f"git config --worktree core.worktree {enclosed.top}",
        ada.path,
    )
    before = _picture(enclosed)
    script = submission_script("Do it", place_of(ada))
    with pytest.raises(ToolError, match="names another worktree"):
        parse_submission(enclosed.sh(script, ada.path, check=False))
    assert _picture(enclosed) == before
    enclosed.sh("git config --unset extensions.worktreeConfig", ada.path)
    assert parse_submission(enclosed.sh(script, ada.path, check=False)).committed


async def test_a_repository_that_forgot_the_worktree_is_told_to_the_agent(world):
    ada = await world.agent(await world.depot(), "ada")
    world.sh(f"rm -r {ada.git_dir}/worktrees")
    with pytest.raises(ToolError, match="knows no worktree"):
        place_of(ada)


def _files(world):
    files = RunFiles(RunDir(world.run_dir))
    files.dir.env.write_text(PrivateEnv(base=world.env).model_dump_json())
    files.git_config.write_text("")
    return files


def _boot(world, root, isolation):
    return AgentBoot(
        run="r",
        team="t",
        agent="ada~1",
        name="ada",
        incarnation=1,
        role="teammate",
        definition="d",
        description="",
        prompt="",
        model="m",
        workspace=WorkspaceBoot(root=str(root), isolation=isolation),
        repo=str(world.user),
        run_dir=str(world.run_dir),
    )


async def test_the_tools_git_finds_no_repository_around_a_worktree_or_around_the_verify_folder(enclosed):
    depot = await enclosed.depot()
    ada = await enclosed.agent(depot, "ada")
    files = _files(enclosed)
    env = files.environment_of(_boot(enclosed, ada.path, "worktree"), "ada")
    enclosed.sh("rm .git", ada.path)
    depot.paths.verify.mkdir()
    before = _picture(enclosed)
    places = [ada.path, ada.path / "src", ada.path.parent, depot.paths.verify]
    checks = files.environment_of_checks(_boot(enclosed, enclosed.user, "none"))
    for place, its in [*((place, env) for place in places), (depot.paths.verify, checks)]:
        tried = subprocess.run(
            ["bash", "-c", "git add -A; git commit -m x"],
            cwd=place,
            env=its,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (tried.returncode, tried.stderr.count("not a git repository")) == (128, 2)
    assert _picture(enclosed) == before


async def test_an_agent_in_the_users_checkout_keeps_git_as_it_is(enclosed):
    await enclosed.depot()
    env = _files(enclosed).environment_of(_boot(enclosed, enclosed.user, "none"), "ada")
    assert "GIT_CEILING_DIRECTORIES" not in env
