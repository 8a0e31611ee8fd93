"""Removing a workspace: nothing that an agent made is lost, and in doubt the workspace stays."""

from __future__ import annotations

import pytest

from retinue.orchestrator.workspaces.rescue import remove_agent


async def test_an_untouched_workspace_goes_and_leaves_no_trace_in_the_users_repository(world):
    before = world.picture()
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    removal = await remove_agent(depot, "ada")
    assert removal.kept is None
    assert not ada.path.exists()
    assert not ada.git_dir.exists()
    assert depot.workspaces == {}
    assert list(depot.paths.tmp.iterdir()) == []
    assert world.picture() == before


async def test_everything_that_an_agent_made_is_reachable_from_rescue_refs(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    made = {"committed": world.commit({"c.txt": "committed"}, where=ada.path)}
    made["amended away"] = world.commit({"c.txt": "first try"}, where=ada.path)
    world.write("c.txt", "second try", where=ada.path)
    made["amended"] = world.sh("git commit -qa --amend -m again && git rev-parse HEAD", ada.path)
    world.sh("git switch -q -c side", ada.path)
    made["side"] = world.commit({"side.txt": "side"}, where=ada.path)
    made["tag"] = world.sh(
        "git switch -q --detach && git commit -q --allow-empty -m t && git tag here && git rev-parse HEAD", ada.path
    )
    made["detached"] = world.commit({"d.txt": "detached"}, where=ada.path)
    for text in ("older stash", "newer stash"):
        world.write("lines.txt", text, where=ada.path)
        made[text] = world.sh("git stash -q && git rev-parse refs/stash", ada.path)
    world.write("lines.txt", "staged only", where=ada.path)
    world.sh("git add lines.txt", ada.path)
    world.write("lines.txt", "in the worktree", where=ada.path)
    world.write("untracked.txt", "untracked", where=ada.path)
    removal = await remove_agent(depot, "ada")
    assert removal.kept is None
    inside = f"git --git-dir={depot.paths.depot}"
    reachable = world.sh(f"{inside} rev-list {' '.join(removal.refs)}").split()
    assert {what for what, sha in made.items() if sha not in reachable} == set()
    prefix = "refs/retinue/rescue/ada"
    assert world.sh(f"{inside} show {prefix}/index:lines.txt") == "staged only"
    assert world.sh(f"{inside} show {prefix}/files:lines.txt") == "in the worktree"
    assert world.sh(f"{inside} show {prefix}/files:untracked.txt") == "untracked"
    assert len([ref for ref in removal.refs if "/log/" in ref]) <= 4
    world.sh(f"{inside} fsck --connectivity-only")


async def test_a_workspace_with_a_repository_of_its_own_inside_is_kept(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.sh("mkdir -p build.log/x && git init -q build.log/x/mine", ada.path)
    removal = await remove_agent(depot, "ada")
    assert "repository of its own" in removal.kept
    assert (ada.path / "build.log/x/mine/.git").is_dir()
    assert "ada" in depot.workspaces
    world.sh("rm -rf build.log", ada.path)
    assert (await remove_agent(depot, "ada")).kept is None


@pytest.mark.parametrize(
    ("trouble", "named"),
    [
        ("git merge -q other || true", "staged"),
        ("git config x.y z", "config"),
        ("rm -rf $(git rev-parse --git-common-dir)/objects/??", "rescuing"),
        ("rm -rf $(git rev-parse --git-dir)", "knows no worktree"),
    ],
)
async def test_a_workspace_in_which_git_fails_is_kept(world, trouble, named):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.sh("git branch other", ada.path)
    world.commit({"lines.txt": "mine"}, where=ada.path)
    world.sh("git switch -q other", ada.path)
    world.commit({"lines.txt": "other"}, where=ada.path)
    world.sh(f"git switch -q - && {trouble}", ada.path)
    removal = await remove_agent(depot, "ada")
    assert named in removal.kept
    assert (ada.path / "lines.txt").exists()
    assert depot.workspaces["ada"] == ada


async def test_folders_without_write_permission_are_removed_too(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write("locked/file", "x", where=ada.path)
    (ada.path / "locked").chmod(0o500)
    assert (await remove_agent(depot, "ada")).kept is None
    assert not ada.path.exists()
