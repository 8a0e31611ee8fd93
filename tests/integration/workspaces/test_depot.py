"""Workspaces: an agent can commit in its own, and everything it could break is noticed."""

from __future__ import annotations

import asyncio
import os

import pytest

from retinue.orchestrator.workspaces.bare import GuardTripped
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import GitError, Identity
from retinue.tools.errors import InvariantBroken, SpecError, StateError


async def test_a_workspace_stands_on_its_own_branch_at_the_base_and_is_locked(world):
    before = world.picture()
    depot = await world.depot()
    ada = await world.agent(depot, "ada~1")
    assert world.sh("git symbolic-ref --short HEAD", ada.path) == ada.branch == "retinue/run-1/ada.1/work"
    assert world.sh("git rev-parse HEAD team/tip", ada.path).split() == [ada.base_sha] * 2
    assert ada.base_sha == world.sh("git rev-parse HEAD")
    assert "locked workspace of agent ada~1" in world.sh("git worktree list --porcelain", ada.path)
    assert world.sh("git status --porcelain", ada.path) == ""
    assert world.picture() == before


async def test_the_depot_copies_nothing_and_knows_none_of_the_users_refs(world):
    world.sh("git branch secret && git tag v1")
    depot = await world.depot()
    await world.agent(depot, "ada")
    refs = world.sh(f"git --git-dir={depot.paths.depot} for-each-ref --format='%(refname)'").split()
    assert refs == ["refs/heads/tip", "refs/retinue/base"]
    packs = [f for f in (depot.paths.depot / "objects").rglob("*") if f.is_file()]
    assert [f.name for f in packs] == ["alternates"]
    world.sh(f"git --git-dir={depot.paths.depot} fsck --strict && git --git-dir={depot.workspace('ada').git_dir} fsck")


async def test_a_run_directory_has_at_most_one_depot(world):
    await world.depot()
    with pytest.raises(StateError, match="launched before"):
        await world.depot()


async def test_an_agent_has_at_most_one_workspace_and_bad_names_have_none(world):
    depot = await world.depot()
    await world.agent(depot, "ada")
    with pytest.raises(InvariantBroken):
        await world.agent(depot, "ada")
    for bad in ("result", "../x", "A"):
        with pytest.raises(SpecError):
            await world.agent(depot, bad)
    assert [p.name for p in (world.run_dir / "wt").iterdir()] == ["ada"]


async def test_a_commit_that_is_not_there_leaves_no_half_made_workspace(world):
    depot = await world.depot()
    with pytest.raises(GitError, match="worktree of ada"):
        await depot.add_agent("ada", Identity("A", "a@b"), start="1" * 40)
    assert list((world.run_dir / "wt").iterdir()) == list((world.run_dir / "agents").iterdir()) == []
    assert (await world.agent(depot, "ada")).base_sha == depot.facts.base_sha


async def test_twenty_workspaces_are_made_side_by_side(world):
    depot = await world.depot()
    made = await asyncio.gather(*(world.agent(depot, f"a{number}") for number in range(20)))
    heads = {world.sh("git rev-parse HEAD && git symbolic-ref HEAD", workspace.path) for workspace in made}
    assert len(heads) == 20


async def test_everything_is_found_again_after_a_restart(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    again = await Depot.open(world.git, world.run_dir)
    assert again.workspaces == {"ada": ada}
    assert again.facts == depot.facts
    world.write("new", "x", where=ada.path)
    assert await again.checkpoint("ada") is not None


async def test_a_run_without_a_depot_says_so(world):
    with pytest.raises(StateError, match="no Depot"):
        await Depot.open(world.git, world.top / "nothing")


async def test_a_run_whose_repository_was_moved_away_says_where_it_was(world):
    await world.depot()
    world.user.rename(world.top / "moved")
    with pytest.raises(StateError, match=r"borrows objects from .*user, which is gone"):
        await Depot.open(world.git, world.run_dir)


async def test_any_name_and_address_of_an_agent_survives_in_its_configuration(world):
    depot = await world.depot()
    ada = await depot.add_agent("ada", Identity('Ada "the" \\ #1; Löve', "a+b@x"))
    world.commit({"a": "a"}, where=ada.path)
    assert world.sh("git log -1 --format='%an|%ae'", ada.path) == 'Ada "the" \\ #1; Löve|a+b@x'
    await depot.take("ada", ada.branch, world.sh("git rev-parse HEAD", ada.path))


async def test_agents_commit_as_themselves_and_do_not_see_each_other(world):
    depot = await world.depot()
    ada, bob = await world.agent(depot, "ada"), await world.agent(depot, "bob")
    sha = world.commit({"a.txt": "a\n"}, where=ada.path)
    assert world.sh("git log -1 --format='%an %ae %cn'", ada.path) == "Ada ada@team Ada"
    assert "could not get object info" in world.sh(f"git cat-file -t {sha}", bob.path, check=False)
    assert world.sh("git for-each-ref --format='%(refname)' refs/heads", bob.path) == f"refs/heads/{bob.branch}"
    world.sh("git stash list && git gc -q && git branch mine && git config --list", ada.path)


async def test_an_agents_git_cannot_reach_the_users_branches_or_the_tip(world):
    before = world.picture()
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.commit({"a.txt": "a\n"}, where=ada.path)
    assert "work-is-merged" in world.sh("git push team HEAD:tip", ada.path, check=False)
    world.sh("git update-ref refs/heads/main HEAD; git branch -f tip HEAD; git tag t", ada.path)
    assert await depot.tip() == depot.facts.base_sha
    assert world.picture() == before


async def test_work_is_taken_with_its_objects_and_only_at_the_submitted_commit(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    first = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    (ada.git_dir / "objects").rename(ada.git_dir / "objects-gone")
    assert world.sh(f"git --git-dir={depot.paths.depot} show {first}:a.txt") == "a"
    (ada.git_dir / "objects-gone").rename(ada.git_dir / "objects")
    second = world.commit({"a.txt": "b\n"}, where=ada.path)
    with pytest.raises(StateError, match=f"is at {second}, not at the submitted {first}"):
        await depot.take("ada", ada.branch, first)
    for branch, sha in (("--upload-pack=x", first), (ada.branch, "HEAD"), ("a:refs/heads/tip", first)):
        with pytest.raises(StateError, match="which is no branch and commit"):
            await depot.take("ada", branch, sha)
    with pytest.raises(StateError, match="couldn't find remote ref refs/heads/no/such"):
        await depot.take("ada", "no/such", first)
    assert await depot.tip() == depot.facts.base_sha


async def test_broken_objects_are_not_taken(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    tree = world.sh("git mktree --missing <<< '100644 blob 1111111111111111111111111111111111111111\t.git'", ada.path)
    sha = world.sh(f"git commit-tree {tree} -p HEAD -m x", ada.path)
    world.sh(f"git update-ref refs/heads/{ada.branch} {sha}", ada.path)
    with pytest.raises(StateError, match="taking the work of ada"):
        await depot.take("ada", ada.branch, sha)


async def test_the_tip_moves_only_from_where_it_is_expected_and_every_agent_sees_it(world):
    depot = await world.depot()
    await asyncio.gather(world.agent(depot, "ada"), world.agent(depot, "bob"))
    sha = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    with pytest.raises(StateError, match="not at"):
        await depot.advance_tip(sha, sha)
    await depot.advance_tip(depot.facts.base_sha, sha)
    assert await depot.publish_tip() == ()
    bob = depot.workspace("bob")
    assert world.sh("git rev-parse team/tip && git show team/tip:a.txt", bob.path).split() == [sha, "a"]
    assert world.sh("git merge -q team/tip && git status --porcelain", bob.path) == ""
    world.sh("git fetch -q team", bob.path)


TAMPERING = {
    "config": "git config alias.x '!true'",
    "config.worktree": "touch $D/config.worktree",
    "hooks": "mkdir -p $D/hooks && touch $D/hooks/post-checkout",
    "info/attributes": "echo '* filter=x' > $D/info/attributes",
    "commondir": "echo /elsewhere > $D/commondir",
    "the folder itself": "mv $D $D.moved && ln -s $D.moved $D",
}


@pytest.mark.parametrize("what", list(TAMPERING))
async def test_a_changed_agent_repository_is_refused_until_it_is_put_back(world, what):
    depot = await world.depot()
    ada, _ = await world.agent(depot, "ada"), await world.agent(depot, "bob")
    sha = world.commit({"a.txt": "a\n"}, where=ada.path)
    world.sh(f"D={ada.git_dir}; {TAMPERING[what]}", ada.path)
    with pytest.raises(GuardTripped, match=what):
        await depot.take("ada", ada.branch, sha)
    assert await depot.publish_tip() == ("ada",)
    await world.hand_in(depot, "bob", {"b.txt": "b\n"})
    if what in ("config", "config.worktree", "hooks", "info/attributes"):
        depot.restore_configuration("ada")
        await depot.take("ada", ada.branch, sha)


@pytest.mark.parametrize("what", ["config", "config.worktree", "hooks", "info/attributes"])
async def test_a_changed_depot_stops_everything(world, what):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    script = TAMPERING[what].replace("git config", "git --git-dir=$D config")
    world.sh(f"D={depot.paths.depot}; {script}", ada.path)
    for call in (
        depot.tip(),
        depot.checkpoint("ada"),
        depot.advance_tip("1" * 40, "2" * 40),
        world.agent(depot, "bob"),
    ):
        with pytest.raises(GuardTripped, match=what):
            await call
    with pytest.raises(GuardTripped, match=what):
        await Depot.open(world.git, world.run_dir)


async def test_ignored_files_of_worktreeinclude_are_copied_and_never_committed(world):
    world.write(".env", "KEY=1\n")
    world.write("src/.env", "KEY=2\n")
    world.write("data/local.db", "rows\n")
    world.write("data/other.db", "rows\n")
    world.write("untracked.txt", "not ignored\n")
    world.write(".git/info/exclude", "*.db\n")
    world.write(".worktreeinclude", "# secrets\n.env\ndata/local.db\nuntracked.txt\nlines.txt\n")
    (world.user / "data/local.db").chmod(0o600)
    os.symlink("/etc/hostname", world.user / "link.log")
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    assert (ada.path / ".env").read_text() == "KEY=1\n"
    assert (ada.path / "src/.env").read_text() == "KEY=2\n"
    assert (ada.path / "data/local.db").stat().st_mode & 0o777 == 0o600
    assert not (ada.path / "data/other.db").exists()
    assert not (ada.path / "untracked.txt").exists()
    assert not (ada.path / "link.log").exists()
    assert world.sh("git add -A && git status --porcelain", ada.path) == ""
    assert await depot.checkpoint("ada") is None


async def test_what_the_user_ignores_everywhere_is_ignored_in_workspaces(world):
    world.write(".config/git/ignore", ".idea/\n", where=world.home)
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write(".idea/workspace.xml", "noise", where=ada.path)
    assert world.sh("git status --porcelain", ada.path) == ""
    assert await depot.checkpoint("ada") is None


async def test_line_ending_settings_of_the_user_are_kept_and_nothing_else_is(world):
    world.sh("git config core.autocrlf input && git config alias.evil '!true' && git config user.signingKey x")
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    listing = world.sh("git config --list", ada.path)
    assert "core.autocrlf=input" in listing
    assert "evil" not in listing
    assert "signingkey" not in listing


async def test_a_dirty_checkout_is_the_base_when_asked_for(world):
    world.write("lines.txt", "changed\n")
    world.write("new.txt", "untracked\n")
    world.write("noise.log", "ignored\n")
    world.sh("git rm -q --cached src/app.py && rm src/app.py")
    before = world.picture()
    index = (world.user / ".git/index").read_bytes()
    depot = await world.depot("worktree")
    ada = await world.agent(depot, "ada")
    assert world.sh("ls", ada.path).split() == ["lines.txt", "new.txt"]
    assert (ada.path / "lines.txt").read_text() == "changed\n"
    assert world.sh("git status --porcelain", ada.path) == ""
    assert world.sh("git rev-parse HEAD^", ada.path) == world.sh("git rev-parse HEAD")
    assert world.picture() == before
    assert (world.user / ".git/index").read_bytes() == index
    assert world.sh("git rev-parse refs/retinue/run-1/base") == depot.facts.base_sha
    assert (await Depot.open(world.git, world.run_dir)).facts.base_sha == depot.facts.base_sha


async def test_a_head_base_does_not_contain_uncommitted_changes(world):
    world.write("lines.txt", "changed\n")
    world.write("new.txt", "untracked\n")
    ada = await world.agent(await world.depot(), "ada")
    assert not (ada.path / "new.txt").exists()
    assert (ada.path / "lines.txt").read_text().startswith("line 1\n")


async def test_a_sha256_repository_works_the_same(world):
    world.sh(
        "rm -rf user && git init -q --object-format=sha256 -b main user && cd user && git config user.name n "
        "&& git config user.email e && echo x > x && git add x && git commit -q -m x",
        world.top,
    )
    depot = await world.depot()
    await world.agent(depot, "ada")
    assert len(await world.hand_in(depot, "ada", {"y": "y"})) == 64


async def test_a_shallow_clone_is_a_base_like_any_other(world):
    world.commit({"x": "1"})
    world.commit({"x": "2"})
    world.sh(
        "git clone -q --depth 1 file://$PWD ../shallow && rm -rf ../user && mv ../shallow ../user && cd ../user "
        "&& git config user.name n && git config user.email e",
        world.top / "user",
    )
    depot = await world.depot()
    user = await world.open()
    await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", {"y": "y"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    await user.mirror_result(depot.paths.depot, "run-1", sha, None)
    assert world.sh("git log --oneline retinue/run-1/result | wc -l") == "2"
