"""The user's repository: what a base is, what is refused, and what never happens to it."""

from __future__ import annotations

import pytest

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import SpecError, StateError


async def test_head_is_the_current_commit_and_a_dirty_checkout_is_named(world):
    user = await world.open()
    clean = await user.resolve_base("head")
    world.write("lines.txt", "changed\n")
    dirty = await user.resolve_base("head")
    assert clean.sha == dirty.sha == world.sh("git rev-parse HEAD")
    assert (clean.dirty, dirty.dirty) == (False, True)
    assert "main" in dirty.description
    assert "uncommitted changes are not part" in dirty.description


async def test_an_untracked_file_makes_a_checkout_dirty_but_an_ignored_one_does_not(world):
    user = await world.open()
    world.write("build.log", "noise")
    assert not (await user.resolve_base("head")).dirty
    world.write("new.txt", "work")
    assert (await user.resolve_base("head")).dirty


@pytest.mark.parametrize("name", ["v1", "other", "HEAD~1", "refs/heads/other"])
async def test_a_base_may_be_any_name_of_a_commit(world, name):
    world.sh("git branch other && git tag -a v1 -m one")
    first = world.sh("git rev-parse HEAD")
    world.commit({"b": "b"})
    assert (await (await world.open()).resolve_base(name)).sha == first


@pytest.mark.parametrize("name", ["nowhere", "--all", "HEAD:lines.txt", "HEAD^9", ""])
async def test_a_base_that_names_no_commit_says_what_to_write(world, name):
    user = await world.open()
    with pytest.raises(SpecError, match=r"repo\.base.*Write head, worktree, or"):
        await user.resolve_base(name)


async def test_a_folder_below_the_top_and_a_linked_worktree_are_both_a_way_in(world):
    world.sh("git worktree add -q ../linked -b linked")
    below = await UserRepo.open(world.git, world.user / "src", home=world.home)
    linked = await UserRepo.open(world.git, world.top / "linked", home=world.home)
    assert below.root == world.user
    assert linked.objects == world.user / ".git/objects"
    world.commit({"x": "x"}, where=world.top / "linked")
    assert (await linked.resolve_base("head")).sha == world.sh("git rev-parse linked")


async def test_a_repository_without_a_commit_is_refused_with_a_remedy(world):
    world.sh("git init -q ../empty")
    with pytest.raises(SpecError, match=r"no commit yet.*--allow-empty"):
        await UserRepo.open(world.git, world.top / "empty", home=world.home)


async def test_a_folder_outside_any_repository_is_refused_with_a_remedy(world):
    (world.top / "plain").mkdir()
    with pytest.raises(SpecError, match="not a git repository; run `git init`"):
        await UserRepo.open(world.git, world.top / "plain", home=world.home)
    with pytest.raises(SpecError, match="not a folder"):
        await UserRepo.open(world.git, world.top / "missing", home=world.home)


async def test_a_bare_repository_is_refused_with_a_remedy(world):
    world.sh("git clone -q --bare . ../bare.git && git clone -q . ../odd && git -C ../odd config core.bare true")
    for name in ("bare.git", "odd"):
        with pytest.raises(SpecError, match="bare repository; name a checkout"):
            await UserRepo.open(world.git, world.top / name, home=world.home)


@pytest.mark.parametrize(
    "setting",
    ["extensions.partialClone origin", "remote.origin.promisor true", "remote.origin.partialclonefilter blob:none"],
)
async def test_a_partial_clone_is_refused_with_a_remedy(world, setting):
    world.sh(f"git config {setting}")
    with pytest.raises(SpecError, match=r"partial clone.*--no-filter"):
        await world.open()


async def test_a_chain_of_borrowed_objects_deeper_than_three_is_refused(world):
    for number in range(1, 5):
        source = world.user if number == 1 else world.top / f"c{number - 1}"
        world.sh(f"git clone -q --shared {source} {world.top}/c{number}")
    await UserRepo.open(world.git, world.top / "c3", home=world.home)
    with pytest.raises(SpecError, match=r"borrows objects.*git repack -a -d"):
        await UserRepo.open(world.git, world.top / "c4", home=world.home)


async def test_a_branch_named_retinue_is_refused_with_a_remedy(world):
    world.sh("git branch retinue")
    with pytest.raises(SpecError, match=r"branch named `retinue`.*git branch -m"):
        await world.open()


@pytest.mark.parametrize("key", ["include.path", "includeIf.gitdir:/.path", "includeIf.onbranch:main.path"])
async def test_an_include_in_the_repositorys_configuration_is_refused(world, key):
    world.sh(f"git config '{key}' /nowhere")
    with pytest.raises(SpecError, match="includes '/nowhere'"):
        await world.open()


async def test_pin_and_unpin_leave_nothing_behind(world):
    user = await world.open()
    sha = world.sh("git rev-parse HEAD")
    before = world.picture()
    await user.pin("r", sha)
    assert world.sh("git rev-parse refs/retinue/r/base") == sha
    await user.unpin("r")
    await user.unpin("r")
    assert world.sh("git for-each-ref refs/retinue") == ""
    assert world.picture() == before


async def test_the_result_is_mirrored_with_one_move_and_the_checkout_stays_as_it_is(world):
    world.write("lines.txt", "dirty\n")
    depot = await world.depot()
    user = await world.open()
    await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", {"new.txt": "new\n"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    before = world.picture()
    await user.mirror_result(depot.paths.depot, "run-1", sha, None)
    after = world.picture()
    assert world.sh("git rev-parse retinue/run-1/result") == sha
    assert world.sh("git show retinue/run-1/result:new.txt") == "new"
    assert {k: v for k, v in after.items() if k != "branches"} == {k: v for k, v in before.items() if k != "branches"}
    assert set(after["branches"].splitlines()) - set(before["branches"].splitlines()) == {
        f"{sha} commit\trefs/heads/retinue/run-1/result"
    }
    assert world.sh("git for-each-ref --format='%(refname)' refs/retinue") == "refs/retinue/run-1/base"
    world.sh("git fsck --strict")


async def test_a_result_that_somebody_moved_is_left_alone(world):
    depot = await world.depot()
    user = await world.open()
    await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", {"new.txt": "new\n"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    world.sh("git branch retinue/run-1/result main")
    with pytest.raises(StateError, match="not at nothing any more"):
        await user.mirror_result(depot.paths.depot, "run-1", sha, None)
    assert world.sh("git rev-parse retinue/run-1/result") == world.sh("git rev-parse main")
    assert world.sh("git for-each-ref refs/retinue/run-1/in") == ""


async def test_a_result_that_is_checked_out_is_not_moved(world):
    depot = await world.depot()
    user = await world.open()
    await world.agent(depot, "ada")
    sha = await world.hand_in(depot, "ada", {"new.txt": "new\n"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    world.sh("git worktree add -q ../look -b retinue/run-1/result")
    with pytest.raises(StateError, match=r"checked out in .*look"):
        await user.mirror_result(depot.paths.depot, "run-1", sha, world.sh("git rev-parse main"))


async def test_a_sha_that_is_not_the_depots_tip_is_not_mirrored(world):
    depot = await world.depot()
    user = await world.open()
    with pytest.raises(StateError, match="the Depot's tip is"):
        await user.mirror_result(depot.paths.depot, "run-1", "1" * 40, None)
    assert world.sh("git for-each-ref refs/heads/retinue") == ""


async def test_a_url_rewrite_that_would_redirect_the_fetch_is_refused(world):
    depot = await world.depot()
    world.sh(f"git config url.https://elsewhere/.insteadOf {world.top}/")
    user = await world.open()
    with pytest.raises(SpecError, match="would redirect a fetch"):
        await user.mirror_result(depot.paths.depot, "run-1", depot.facts.base_sha, None)


async def test_what_the_repository_is_configured_to_run_is_never_run(world, canary):
    evil = world.top / "evil"
    world.write(".gitattributes", "*.txt filter=bad diff=bad merge=bad\n")
    world.commit({"note.txt": "note\n"})
    for key in (
        "core.fsmonitor",
        "filter.bad.clean",
        "filter.bad.smudge",
        "filter.bad.process",
        "diff.bad.textconv",
        "diff.bad.command",
        "diff.external",
        "merge.bad.driver",
        "gpg.program",
        "credential.helper",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "sequence.editor",
    ):
        world.sh(f"git config {key} {evil}")
    world.sh("git config filter.bad.required true && git config commit.gpgSign true && mkdir ../hooks")
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change", "fsmonitor-watchman"):
        world.sh(f"cp {evil} ../hooks/{hook} && mkdir -p .git/hooks && cp {evil} .git/hooks/{hook}")
    world.sh(f"git config core.hooksPath {world.top}/hooks; rm -f {world.top}/canary")
    world.write("note.txt", "note, changed\n")
    user = await world.open()
    assert (await user.resolve_base("worktree")).dirty
    depot = await world.depot("worktree")
    await world.agent(depot, "ada")
    sha = world.sh("git -c core.hooksPath=/dev/null rev-parse HEAD", depot.workspace("ada").path)
    await user.mirror_result(depot.paths.depot, "run-1", sha, None)
    await depot.checkpoint("ada")
    await user.unpin("run-1")
    assert not canary(), (world.top / "canary").read_text()
    world.sh("git status", check=False)
    assert canary(), "the configuration is not hostile at all"


async def test_names_of_agents_runs_and_branches_are_checked():
    for good in ("a", "fixer", "fixer~12", "x-1"):
        assert names.check_agent(good) == good
    for bad in (
        "",
        "A",
        "1a",
        "a/b",
        "a..b",
        "tip",
        "result",
        "base",
        "team",
        "human",
        "human~2",
        "a" * 41,
        "a~",
        "-a",
    ):
        with pytest.raises(SpecError, match="cannot be used"):
            names.check_agent(bad)
    for bad in ("", "-x", "a/b", "..", "a b"):
        with pytest.raises(SpecError, match="cannot be used"):
            names.check_run(bad)
    assert names.is_branch("retinue/run/x.1/work")
    assert not any(names.is_branch(b) for b in ("", "-x", "a..b", "a/", "a.lock", "a b", "a~1", "x/../y", "a:b"))
