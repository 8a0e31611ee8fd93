"""Worktrees that an agent makes beside its own: made, left, weighed and removed by real git, and never with a loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from retinue.agents.boot import WorkspaceBoot
from retinue.orchestrator.runtime.agent_side import AgentShell
from retinue.orchestrator.runtime.beside import AgentWorktrees
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.errors import ToolError
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.system.ports import WorktreeLoss
from support.agents_scene import FreeLeases, a_boot

from .conftest import RUN, World


@dataclass
class Ada:
    world: World
    depot: Depot
    trees: AgentWorktrees

    @property
    def home(self) -> Path:
        return self.depot.workspace("ada").path


@pytest.fixture
async def ada(world: World) -> Ada:
    depot = await world.depot()
    workspace = await world.agent(depot, "ada")
    boot = a_boot(
        run=RUN,
        agent="ada",
        run_dir=str(world.run_dir),
        workspace=WorkspaceBoot(
            root=str(workspace.path),
            isolation="worktree",
            git_dir=str(workspace.git_dir),
            branch=workspace.branch,
            base_sha=workspace.base_sha,
        ),
    )
    world.sh("git config --global user.name Ada && git config --global user.email ada@team", world.top)
    return Ada(world, depot, AgentWorktrees(boot, AgentShell(boot, KeeperShell(), FreeLeases(), world.env), depot))


async def test_a_worktree_is_made_where_the_branch_stands_on_a_branch_of_its_own(ada: Ada) -> None:
    head = ada.world.commit({"new.txt": "x\n"}, where=ada.home)
    place = await ada.trees.make("try/one", "head")
    assert (place.name, place.branch) == ("try+one", f"retinue/{RUN}/ada/beside/try+one")
    assert Path(place.path) == ada.world.run_dir / "beside/ada/try+one"
    assert ada.world.sh("git rev-parse HEAD && git symbolic-ref --short HEAD", Path(place.path)).split() == [
        head,
        place.branch,
    ]
    assert ada.trees.kept() == (place,)


async def test_it_can_begin_at_the_teams_tip(ada: Ada) -> None:
    ada.world.commit({"new.txt": "x\n"}, where=ada.home)
    place = await ada.trees.make("fresh", "tip")
    assert ada.world.sh("git rev-parse HEAD", Path(place.path)) == await ada.depot.tip()


async def test_the_same_name_opens_what_is_there(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    ada.world.write("draft.txt", "mine\n", where=Path(place.path))
    assert await ada.trees.make("one", "head") == place
    assert (Path(place.path) / "draft.txt").read_text() == "mine\n"


async def test_what_stands_in_the_way_is_left_alone(ada: Ada) -> None:
    stranger = ada.world.run_dir / "beside/ada/one"
    ada.world.write("keep.txt", "mine\n", where=stranger)
    with pytest.raises(ToolError, match="is there already and is no worktree"):
        await ada.trees.make("one", "head")
    assert (stranger / "keep.txt").read_text() == "mine\n"
    assert ada.trees.kept() == ()


async def test_a_link_in_the_way_is_not_followed(ada: Ada) -> None:
    elsewhere = ada.world.top / "elsewhere"
    elsewhere.mkdir()
    folder = ada.world.run_dir / "beside/ada"
    folder.mkdir(parents=True)
    (folder / "one").symlink_to(elsewhere)
    with pytest.raises(ToolError, match="is no worktree"):
        await ada.trees.make("one", "head")
    assert not list(elsewhere.iterdir())


async def test_changed_new_and_committed_work_is_counted_and_merged_work_is_not(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    there = Path(place.path)
    assert await ada.trees.loss(place) == WorktreeLoss()
    ada.world.commit({"a.txt": "a\n"}, where=there)
    ada.world.commit({"b.txt": "b\n"}, where=there)
    ada.world.write("src/app.py", "changed\n", where=there)
    ada.world.write("new/deep.txt", "new\n", where=there)
    ada.world.write("ignored.log", "noise\n", where=there)
    assert await ada.trees.loss(place) == WorktreeLoss(files=2, commits=2)
    ada.world.sh(f"git merge -q {place.branch}", ada.home)
    assert await ada.trees.loss(place) == WorktreeLoss(files=2)


async def test_a_commit_without_a_branch_counts_too(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    ada.world.sh("git checkout -q --detach", Path(place.path))
    ada.world.commit({"a.txt": "a\n"}, where=Path(place.path))
    assert await ada.trees.loss(place) == WorktreeLoss(commits=1)


async def test_what_a_removal_loses_is_in_the_depot_before(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    there = Path(place.path)
    tip = ada.world.commit({"a.txt": "a\n"}, where=there)
    ada.world.write("new.txt", "not committed\n", where=there)
    refs = await ada.trees.rescue(place)
    await ada.trees.remove(place)
    assert not there.exists()
    files, branch = refs
    assert await ada.depot.commit_of(branch) == tip
    shown = await ada.depot.run(["show", f"{files}:new.txt"])
    assert shown.stdout == "not committed\n"
    assert (await ada.depot.run(["show", f"{files}:a.txt"])).stdout == "a\n"
    assert ada.world.sh("git branch --list '*beside*'", ada.home) == ""
    assert ada.trees.kept() == ()


async def test_to_remove_twice_is_to_remove_once_and_the_name_is_free_again(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    await ada.trees.remove(place)
    await ada.trees.remove(place)
    assert await ada.trees.make("one", "head") == place


async def test_saving_changes_neither_the_files_nor_what_is_staged(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    there = Path(place.path)
    ada.world.write("staged.txt", "s\n", where=there)
    ada.world.sh("git add staged.txt", there)
    ada.world.write("loose.txt", "l\n", where=there)
    before = ada.world.sh("git status --porcelain", there)
    await ada.trees.rescue(place)
    assert ada.world.sh("git status --porcelain", there) == before


async def test_a_worktree_whose_pointer_was_replaced_is_not_taken_for_another(ada: Ada) -> None:
    place = await ada.trees.make("one", "head")
    (Path(place.path) / ".git").write_text(f"gitdir: {ada.world.user}/.git\n")
    with pytest.raises(ToolError):
        await ada.trees.loss(place)
    assert Path(place.path).is_dir()
