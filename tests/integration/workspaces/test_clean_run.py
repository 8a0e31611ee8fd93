"""Clean and its undo: a run in the trash borrows from nobody and comes back whole."""

from __future__ import annotations

import shutil

import pytest

from retinue.orchestrator.workspaces.clean import clean_run, stand_alone, undo_clean
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import GitError
from retinue.tools.errors import StateError


async def test_a_cleaned_run_stands_alone_and_comes_back(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    world.write("unsaved.txt", "unsaved\n", where=ada.path)
    before = world.picture()
    trash = world.top / "trash"
    cleaned = await clean_run(world.git, world.run_dir, trash, await world.open())
    assert [removal.kept for removal in cleaned.removals] == [None]
    assert not world.run_dir.exists()
    assert world.sh("git for-each-ref refs/retinue") == ""
    assert world.picture() == before
    shutil.rmtree(world.user)
    back = await undo_clean(cleaned.trashed, world.run_dir.parent)
    again = await Depot.open(world.git, back)
    assert await again.tip() == sha
    inside = f"git --git-dir={again.paths.depot}"
    assert world.sh(f"{inside} show tip:lines.txt | head -1", world.top) == "line 1"
    assert world.sh(f"{inside} show refs/retinue/rescue/ada/files:unsaved.txt", world.top) == "unsaved"
    world.sh(f"{inside} fsck --full --strict", world.top)


async def test_a_workspace_that_must_be_kept_goes_along_and_works_after_undo(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.commit({"a.txt": "a\n"}, where=ada.path)
    world.sh("git init -q nested", ada.path)
    cleaned = await clean_run(world.git, world.run_dir, world.top / "trash", await world.open())
    assert "repository of its own" in cleaned.removals[0].kept
    shutil.rmtree(world.user)
    await undo_clean(cleaned.trashed, world.run_dir.parent)
    assert world.sh("git log --format=%s && git status --porcelain", ada.path).split() == [
        "work",
        "start",
        "??",
        "nested/",
    ]


async def test_a_run_that_cannot_be_made_whole_stays_with_its_pin(world):
    blob = world.sh("git rev-parse HEAD:lines.txt")
    world.commit({"lines.txt": "another text\n"})
    depot = await world.depot()
    user = await world.open()
    (world.user / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitError):
        await clean_run(world.git, world.run_dir, world.top / "trash", user)
    assert (depot.paths.depot / "objects/info/alternates").exists()
    assert world.sh("git for-each-ref --format='%(refname)' refs/retinue") == "refs/retinue/run-1/base"


async def test_a_check_that_was_cut_short_is_begun_again(world):
    depot = await world.depot()
    loan = depot.paths.depot / "objects/info/alternates"
    loan.rename(loan.with_name("alternates.before-clean"))
    await stand_alone(world.git, depot.paths.depot)
    assert list(loan.parent.glob("alternates*")) == []
    assert await depot.tip() == depot.facts.base_sha


async def test_clean_and_undo_never_overwrite(world):
    await world.depot()
    trash = world.top / "trash"
    (trash / "run-1").mkdir(parents=True)
    with pytest.raises(StateError, match="in the trash already"):
        await clean_run(world.git, world.run_dir, trash, await world.open())
    with pytest.raises(StateError, match="there again already"):
        await undo_clean(trash / "run-1", world.run_dir.parent)
    with pytest.raises(StateError, match="no run-2 in the trash"):
        await undo_clean(trash / "run-2", world.run_dir.parent)
