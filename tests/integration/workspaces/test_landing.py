"""Taking the result: what moves, what is left alone, and the user's own merge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retinue.orchestrator.workspaces.git import Git, GitError
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


@pytest.mark.parametrize("into", ["--force", "HEAD", "@", "refs/heads/main", "refs/x", "a..b", "a.lock", "a b", ""])
async def test_what_is_no_name_of_a_branch_is_neither_read_nor_moved(world, into):
    user, sha = await _result(world, {"new": "x"})
    before = world.picture()
    for asked in (branch_sha(user, into), land_into(user, "run-1", into, sha, None)):
        with pytest.raises(StateError, match=r"no branch name .*: write one of"):
            await asked
    assert world.picture() == before


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


async def test_a_file_in_the_way_is_named_and_there_is_no_merge_to_take_back(world):
    user, _ = await _result(world, {"lines.txt": "theirs\n"})
    world.write("lines.txt", "mine\n")
    with pytest.raises(StateError, match=r"(?s)lines\.txt.*No merge was begun\. Commit or put aside") as refused:
        await land_checkout(user, "run-1", base_kind="head", env=world.env)
    assert "--abort" not in str(refused.value)
    assert (world.user / "lines.txt").read_text() == "mine\n"


async def test_a_merge_of_the_users_own_is_not_offered_as_ours(world):
    user, _ = await _result(world, {"lines.txt": "theirs\n"})
    world.commit({"lines.txt": "mine\n"})
    for words in ("Resolve what it names", "A merge of your own is under way"):
        with pytest.raises(StateError, match=words):
            await land_checkout(user, "run-1", base_kind="head", env=world.env)


@pytest.mark.parametrize("base", ["head", "worktree"])
async def test_landing_twice_says_that_there_is_nothing_to_land(world, base):
    world.write("mine.txt", "mine\n")
    user, _ = await _result(world, {"new.txt": "new\n"}, base)
    assert (await land_checkout(user, "run-1", base_kind=base, env=world.env)).endswith(f"landed in {world.user}")
    before = world.picture()
    again = await land_checkout(user, "run-1", base_kind=base, env=world.env)
    assert again == f"{world.user} has the result of run run-1 already: there is nothing to land"
    assert world.picture() == before


@pytest.mark.parametrize(
    ("said", "unwritable"),
    [
        ("unable to create directory for .git/refs/retinue", True),
        ("Unable to create .git/refs/retinue/base.lock: Read-only file system", True),
        ("Unable to create .git/refs/retinue/base.lock: File exists", False),
    ],
)
async def test_a_repository_that_cannot_be_written_says_so(world, said, unwritable):
    # Whoever runs the tests may be allowed to write everywhere, so git's answer is given to it.
    script = world.top / "bin" / "git"
    world.write("git", f"#!/bin/sh\necho 'fatal: cannot lock ref: {said}' >&2\nexit 128\n", where=script.parent)
    script.chmod(0o755)
    user = replace(await world.open(), git=Git(search_path=str(script.parent)))
    for asked in (user.pin("run-1", world.sh("git rev-parse HEAD")), user.unpin("run-1")):
        with pytest.raises(GitError) as refused:
            await asked
        assert (f"the repository {world.user} cannot be written" in str(refused.value)) == unwritable
        assert said in str(refused.value)


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
