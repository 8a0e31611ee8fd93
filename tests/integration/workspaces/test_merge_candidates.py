"""Candidates: what git makes of two agents' work, and what their author is told when it cannot."""

from __future__ import annotations

import asyncio

import pytest

from retinue.orchestrator.merging.git_merge import Candidate, Conflict, build_candidate
from retinue.orchestrator.workspaces.git import Identity

ADA = Identity("Ada", "ada@team")


async def _team(world, *agents: str):
    depot = await world.depot()
    await asyncio.gather(*(world.agent(depot, name) for name in agents))
    return depot


async def _build(depot, sha: str, strategy: str = "merge") -> Candidate | Conflict:
    return await build_candidate(depot, await depot.tip(), sha, strategy=strategy, message="Task 1\n\nBody", author=ADA)


async def _land(depot, sha: str, strategy: str = "merge") -> Candidate:
    tip = await depot.tip()
    candidate = await _build(depot, sha, strategy)
    assert isinstance(candidate, Candidate)
    await depot.advance_tip(tip, candidate.sha)
    return candidate


def _show(world, depot, what: str) -> str:
    return world.sh(f"git --git-dir={depot.paths.depot} {what}")


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
async def test_two_agents_may_change_one_file_in_different_places(world, strategy):
    depot = await _team(world, "ada", "bob")
    text = (world.user / "lines.txt").read_text()
    first = await world.hand_in(depot, "ada", {"lines.txt": text.replace("line 2\n", "ada\n")}, "from ada")
    second = await world.hand_in(depot, "bob", {"lines.txt": text.replace("line 29\n", "bob\n")}, "from bob")
    await _land(depot, first, strategy)
    candidate = await _land(depot, second, strategy)
    merged = _show(world, depot, f"show {candidate.sha}:lines.txt")
    assert "ada" in merged
    assert "bob" in merged
    subjects = _show(world, depot, "log --first-parent --format='%s|%an' tip").splitlines()
    expected = {"merge": ["Task 1|Ada", "Task 1|Ada"], "rebase": ["from bob|Bob", "from ada|Ada"]}
    assert subjects == [*expected[strategy], "start|User"]


async def test_a_merge_names_the_task_and_both_parents(world):
    depot = await _team(world, "ada")
    sha = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    candidate = await _build(depot, sha)
    assert _show(world, depot, f"log -1 --format='%P|%B|%an|%cn' {candidate.sha}") == (
        f"{depot.facts.base_sha} {sha}|Task 1\n\nBody|Ada|Ada"
    )
    assert await depot.tip() == depot.facts.base_sha


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
async def test_work_that_changes_nothing_against_the_tip_is_nothing(world, strategy):
    depot = await _team(world, "ada", "bob")
    first = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    await _land(depot, first, strategy)
    tip = await depot.tip()
    same = await world.hand_in(depot, "bob", {"a.txt": "a\n"})
    for sha in (first, same, depot.facts.base_sha):
        candidate = await _build(depot, sha, strategy)
        assert (candidate.sha, candidate.kind) == (tip, "nothing")


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
async def test_a_conflict_names_the_files_and_the_way_out(world, strategy):
    depot = await _team(world, "ada", "bob")
    first = await world.hand_in(depot, "ada", {"lines.txt": "ada\n", "other": "1"})
    second = await world.hand_in(depot, "bob", {"lines.txt": "bob\n", "src/app.py": "bob\n"})
    await _land(depot, first, strategy)
    conflict = await _build(depot, second, strategy)
    assert isinstance(conflict, Conflict)
    assert conflict.files == ("lines.txt",)
    assert "git merge team/tip" in conflict.text
    assert "CONFLICT (content): Merge conflict in lines.txt" in conflict.text


async def test_the_way_out_works_and_the_resolution_lands(world):
    depot = await _team(world, "ada", "bob")
    first = await world.hand_in(depot, "ada", {"lines.txt": "ada\n"})
    second = await world.hand_in(depot, "bob", {"lines.txt": "bob\n"})
    await _land(depot, first)
    await depot.publish_tip()
    assert isinstance(await _build(depot, second), Conflict)
    bob = depot.workspace("bob")
    world.sh("git merge team/tip || true", bob.path)
    resolved = await world.hand_in(depot, "bob", {"lines.txt": "ada\nbob\n"})
    for strategy in ("merge", "rebase"):
        candidate = await _build(depot, resolved, strategy)
        assert _show(world, depot, f"show {candidate.sha}:lines.txt") == "ada\nbob"


async def test_deleted_here_and_changed_there_is_a_conflict_that_names_the_file(world):
    depot = await _team(world, "ada", "bob")
    world.sh("git rm -q src/app.py", depot.workspace("ada").path)
    first = await world.hand_in(depot, "ada", {})
    second = await world.hand_in(depot, "bob", {"src/app.py": "changed\n"})
    await _land(depot, first)
    conflict = await _build(depot, second)
    assert conflict.files == ("src/app.py",)
    assert "modify/delete" in conflict.text


async def test_a_rebase_keeps_authors_messages_and_says_what_became_of_each_commit(world):
    depot = await _team(world, "ada", "bob")
    await _land(depot, await world.hand_in(depot, "ada", {"a.txt": "a\n"}), "rebase")
    one = await world.hand_in(depot, "bob", {"b.txt": "b\n"}, "first of bob")
    two = await world.hand_in(depot, "bob", {"a.txt": "a\n"}, "already there")
    three = await world.hand_in(depot, "bob", {"c.txt": "c\n"}, "third of bob")
    tip = await depot.tip()
    candidate = await _build(depot, three, "rebase")
    log = _show(world, depot, f"log --format='%s|%an|%ad' --date=raw {tip}..{candidate.sha}").splitlines()
    dates = [_show(world, depot, f"log -1 --format=%ad --date=raw {sha}") for sha in (three, one)]
    assert log == [f"third of bob|Bob|{dates[0]}", f"first of bob|Bob|{dates[1]}"]
    rewritten = dict(candidate.rewritten)
    assert list(rewritten) == [one, two, three]
    assert rewritten[three] == candidate.sha
    assert rewritten[one] == rewritten[two]


async def test_a_range_with_a_merge_commit_is_merged_even_when_rebase_is_wanted(world):
    depot = await _team(world, "ada")
    ada = depot.workspace("ada")
    world.sh("git switch -q -c side", ada.path)
    world.commit({"side.txt": "s"}, where=ada.path)
    world.sh("git switch -q -", ada.path)
    world.commit({"main.txt": "m"}, where=ada.path)
    world.sh("git merge -q --no-edit side", ada.path)
    sha = await world.hand_in(depot, "ada", {"last.txt": "l"})
    candidate = await _build(depot, sha, "rebase")
    assert _show(world, depot, f"log -1 --format=%P {candidate.sha}") == f"{depot.facts.base_sha} {sha}"


async def test_attributes_of_the_tip_decide_how_files_are_merged_and_an_agents_do_not(world):
    world.commit({".gitattributes": "lines.txt merge=union\n"})
    depot = await _team(world, "ada", "bob")
    text = (world.user / "lines.txt").read_text()
    first = await world.hand_in(depot, "ada", {"lines.txt": text + "ada\n", "src/app.py": "ada\n"})
    second = await world.hand_in(depot, "bob", {"lines.txt": text + "bob\n"})
    third = await world.hand_in(depot, "bob", {"src/app.py": "bob\n", ".gitattributes": "* merge=union\n"})
    await _land(depot, first)
    assert _show(world, depot, f"show {(await _build(depot, second)).sha}:lines.txt").endswith("ada\nbob")
    assert isinstance(await _build(depot, third), Conflict)


async def test_a_merge_driver_that_attributes_name_is_not_run(world, canary):
    world.commit({".gitattributes": "* merge=bad filter=bad\n"})
    world.sh(f"git config merge.bad.driver {world.top}/evil && git config filter.bad.clean {world.top}/evil")
    depot = await _team(world, "ada", "bob")
    first = await world.hand_in(depot, "ada", {"a.txt": "a\n"})
    second = await world.hand_in(depot, "bob", {"a.txt": "b\n"})
    await _land(depot, first)
    assert isinstance(await _build(depot, second), Conflict)
    assert not canary()


async def test_a_branch_without_common_history_is_a_conflict_and_not_a_crash(world):
    depot = await _team(world, "ada")
    world.sh("git switch -q --orphan lost && git commit -q --allow-empty -m lost", depot.workspace("ada").path)
    sha = world.sh("git rev-parse HEAD", depot.workspace("ada").path)
    await depot.take("ada", "lost", sha)
    conflict = await _build(depot, sha)
    assert "shares no history" in conflict.text


async def test_names_with_spaces_quotes_and_other_alphabets_survive(world):
    depot = await _team(world, "ada", "bob")
    name = 'näme "with" space\n.txt'
    first = await world.hand_in(depot, "ada", {name: "ada\n"})
    second = await world.hand_in(depot, "bob", {name: "bob\n"})
    await _land(depot, first)
    assert (await _build(depot, second)).files == (name,)
