"""Taking the result: what moves, what is left alone, and the user's own merge."""

from __future__ import annotations

import pytest

from retinue.orchestrator.workspaces.landing import branch_sha, land_checkout, land_into
from retinue.tools.errors import StateError

RESULT = "retinue/run-1/result"


async def _result(world, files: dict[str, str], base: str = "head"):
    depot = await world.depot(base)
    user = await world.open()
    await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", files)
    await depot.advance_tip(depot.facts.base_sha, sha)
    await user.mirror_result(depot.paths.depot, "run-1", sha, None)
    return user, sha


async def test_a_branch_that_is_checked_out_nowhere_moves_once(world):
    world.sh("git branch release")
    user, sha = await _result(world, {"new": "x"})
    landing = await land_into(user, "run-1", "release", sha, await branch_sha(user, "release"))
    assert landing.moved
    assert world.sh("git rev-parse release") == sha
    assert (await land_into(user, "run-1", "release", sha, sha)).moved


async def test_a_branch_that_did_not_exist_is_made(world):
    user, sha = await _result(world, {"new": "x"})
    assert await branch_sha(user, "team/work") is None
    assert (await land_into(user, "run-1", "team/work", sha, None)).moved
    assert world.sh("git rev-parse team/work") == sha


@pytest.mark.parametrize("dirty", [False, True])
async def test_a_branch_that_is_checked_out_is_left_alone_and_the_command_is_named(world, dirty):
    user, sha = await _result(world, {"new": "x"})
    if dirty:
        world.write("lines.txt", "mine")
    before = world.picture()
    landing = await land_into(user, "run-1", "main", sha, await branch_sha(user, "main"))
    assert not landing.moved
    assert landing.command == f"git -C {world.user} merge {RESULT}"
    assert world.picture() == before


async def test_a_branch_checked_out_in_another_worktree_is_left_alone(world):
    world.sh("git worktree add -q ../other -b release")
    user, sha = await _result(world, {"new": "x"})
    landing = await land_into(user, "run-1", "release", sha, await branch_sha(user, "release"))
    assert "other" in landing.command
    assert world.sh("git rev-parse release") == world.sh("git rev-parse main")


async def test_a_branch_that_moved_meanwhile_is_left_alone(world):
    world.sh("git branch release")
    user, sha = await _result(world, {"new": "x"})
    recorded = await branch_sha(user, "release")
    moved = world.sh("git commit-tree HEAD^{tree} -p HEAD -m other")
    world.sh(f"git branch -f release {moved}")
    landing = await land_into(user, "run-1", "release", sha, recorded)
    assert "moved since" in landing.reason
    assert landing.command == f"git switch release && git merge {RESULT}"
    assert world.sh("git rev-parse release") == moved


async def test_a_branch_that_is_not_behind_the_result_is_left_alone(world):
    moved = world.sh("git commit-tree HEAD^{tree} -p HEAD -m other")
    world.sh(f"git branch release {moved}")
    user, sha = await _result(world, {"new": "x"})
    assert "not behind" in (await land_into(user, "run-1", "release", sha, moved)).reason
    with pytest.raises(StateError, match="no branch name"):
        await land_into(user, "run-1", "--force", sha, None)


async def test_land_is_the_users_own_merge_with_hooks_and_uncommitted_changes_kept(world):
    user, _ = await _result(world, {"new.txt": "new\n"})
    world.write("src/app.py", "mine\n")
    world.sh("printf '#!/bin/sh\\ntouch ran' > .git/hooks/post-merge && chmod +x .git/hooks/post-merge")
    await land_checkout(user, "run-1", base_kind="head", env=world.env)
    assert (world.user / "new.txt").read_text() == "new\n"
    assert (world.user / "src/app.py").read_text() == "mine\n"
    assert (world.user / "ran").exists()


async def test_a_conflict_when_landing_names_the_way_out(world):
    user, _ = await _result(world, {"lines.txt": "theirs\n"})
    world.commit({"lines.txt": "mine\n"})
    with pytest.raises(StateError, match=r"(?s)CONFLICT.*git merge --abort"):
        await land_checkout(user, "run-1", base_kind="head", env=world.env)


async def test_land_without_a_result_says_so(world):
    await world.depot()
    with pytest.raises(StateError, match="has no result"):
        await land_checkout(await world.open(), "run-1", base_kind="head", env=world.env)


async def test_a_run_from_a_dirty_checkout_lands_on_top_of_the_uncommitted_changes(world):
    world.write("lines.txt", (world.user / "lines.txt").read_text().replace("line 3\n", "mine 3\n"))
    world.write("untracked.txt", "mine\n")
    changed = (world.user / "lines.txt").read_text().replace("line 20\n", "theirs 20\n")
    user, _ = await _result(world, {"lines.txt": changed, "bin.dat": "\0\1\2", "untracked.txt": "both\n"}, "worktree")
    head = world.sh("git rev-parse HEAD")
    await land_checkout(user, "run-1", base_kind="worktree", env=world.env)
    assert (world.user / "lines.txt").read_text() == changed
    assert (world.user / "bin.dat").read_text() == "\0\1\2"
    assert (world.user / "untracked.txt").read_text() == "both\n"
    assert world.sh("git rev-parse HEAD") == head


async def test_a_patch_lands_also_when_the_changes_were_committed_and_moved_on(world):
    text = (world.user / "lines.txt").read_text()
    world.write("lines.txt", text.replace("line 3\n", "mine 3\n"))
    user, _ = await _result(
        world, {"lines.txt": text.replace("line 3\n", "mine 3\n").replace("line 5\n", "team 5\n")}, "worktree"
    )
    world.commit({"lines.txt": text.replace("line 3\n", "mine 3\n").replace("line 8\n", "mine 8\n")})
    await land_checkout(user, "run-1", base_kind="worktree", env=world.env)
    final = (world.user / "lines.txt").read_text()
    assert all(part in final for part in ("mine 3", "team 5", "mine 8"))


async def test_a_patch_that_does_not_apply_changes_nothing_and_says_what_to_do(world):
    world.write("lines.txt", "mine\n")
    user, _ = await _result(world, {"lines.txt": "theirs\n", "other.txt": "x"}, "worktree")
    world.write("lines.txt", "mine, and more\n")
    with pytest.raises(StateError, match="does not apply"):
        await land_checkout(user, "run-1", base_kind="worktree", env=world.env)
    assert (world.user / "lines.txt").read_text() == "mine, and more\n"
    assert not (world.user / "other.txt").exists()
