"""What agents' own shells run: handing work in, and moving on to the tip."""

from __future__ import annotations

import pytest

from retinue.orchestrator.merging.submission import (
    Sync,
    parse_submission,
    parse_sync,
    place_of,
    submission_script,
    sync_with_tip,
)
from retinue.tools.errors import ToolError


def _hand_in(world, agent, message="Do it"):
    return parse_submission(world.sh(submission_script(message, place_of(agent)), agent.path, check=False))


async def test_uncommitted_work_is_committed_in_the_agents_name(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write("new.txt", "new\n", where=ada.path)
    world.write("lines.txt", "changed\n", where=ada.path)
    handed = _hand_in(world, ada, 'It\'s done; "really" $HOME\n\nMore')
    assert (handed.branch, handed.committed) == (ada.branch, True)
    assert world.sh("git log -1 --format='%H|%an|%B' && git status --porcelain", ada.path) == (
        f'{handed.sha}|Ada|It\'s done; "really" $HOME\n\nMore'
    )
    await depot.take("ada", handed.branch, handed.sha)


async def test_committed_work_is_handed_in_as_it_is(world):
    ada = await world.agent(await world.depot(), "ada")
    sha = world.commit({"a": "a"}, where=ada.path)
    handed = _hand_in(world, ada)
    assert (handed.sha, handed.committed) == (sha, False)
    world.sh("git switch -q -c another", ada.path)
    assert _hand_in(world, ada).branch == "another"


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("git switch -q --detach", "HEAD is detached"),
        ("git switch -q other; git merge -q @{-1}", "conflicts that are not resolved"),
        ("git rebase -q other; git add -A", "a rebase is going on"),
        (
            "git init -q nested; git -C nested -c user.name=n -c user.email=e commit -q --allow-empty -m x",
            "lies in nested",
        ),
        ("git init -q nested", "git add failed"),
        (
            "printf '#!/bin/sh\\necho no tests; exit 1' > ../hook; chmod +x ../hook; git config core.hooksPath ..;"
            "mv ../hook ../pre-commit; touch new",
            "no tests",
        ),
    ],
)
async def test_work_that_cannot_be_handed_in_says_why_and_nothing_is_lost(world, trouble, told):
    ada = await world.agent(await world.depot(), "ada")
    world.sh("git branch other", ada.path)
    sha = world.commit({"lines.txt": "mine\n"}, where=ada.path)
    world.sh("git switch -q other", ada.path)
    world.commit({"lines.txt": "other\n"}, where=ada.path)
    world.sh(f"git switch -q -; {trouble} || true", ada.path, check=False)
    with pytest.raises(ToolError, match="could not be handed in") as raised:
        _hand_in(world, ada)
    assert told in str(raised.value)
    world.sh(f"git cat-file -e {sha}", ada.path)


async def test_a_resolved_merge_is_committed_as_a_merge(world):
    ada = await world.agent(await world.depot(), "ada")
    world.sh("git branch other", ada.path)
    world.commit({"lines.txt": "mine\n"}, where=ada.path)
    world.sh("git switch -q other", ada.path)
    world.commit({"lines.txt": "other\n"}, where=ada.path)
    world.sh("git merge -q @{-1}; git checkout -q --ours . && git add -A", ada.path, check=False)
    handed = _hand_in(world, ada)
    assert handed.committed
    assert len(world.sh("git log -1 --format=%P", ada.path).split()) == 2


async def _landed(world):
    """Bob's work is in the tip, and Ada's repository knows it."""
    depot = await world.depot()
    ada, _ = await world.agent(depot, "ada"), await world.agent(depot, "bob")
    sha = await world.hand_in(depot, "bob", {"bob.txt": "bob\n"})
    await depot.advance_tip(depot.facts.base_sha, sha)
    await depot.publish_tip()
    return depot, ada, sha


def _sync(world, ada, tip, last_merged=None):
    sync = sync_with_tip(tip, place_of(ada), base=ada.base_sha, last_merged=last_merged)
    assert isinstance(sync, Sync)
    return parse_sync(world.sh(sync.script, ada.path, check=False))


async def test_a_clean_branch_without_work_of_its_own_moves_to_the_tip(world):
    depot, ada, tip = await _landed(world)
    synced = _sync(world, ada, tip)
    assert synced.moved
    assert world.sh("git rev-parse HEAD && git status --porcelain && cat bob.txt", ada.path).split() == [tip, "bob"]
    assert not _sync(world, ada, tip).moved
    more = await world.hand_in(depot, "bob", {"more.txt": "more\n"})
    await depot.advance_tip(tip, more)
    await depot.publish_tip()
    assert _sync(world, ada, more).moved


async def test_a_branch_at_its_last_merged_submission_moves_even_when_that_was_rewritten(world):
    depot, ada, tip = await _landed(world)
    sha = await world.hand_in(depot, "ada", {"ada.txt": "ada\n"})
    rewritten = world.sh(
        f"GIT_DIR={depot.paths.depot} git -c user.name=n -c user.email=e commit-tree {sha}^{{tree}} -p {tip} -m again"
    )
    await depot.advance_tip(tip, rewritten)
    await depot.publish_tip()
    assert _sync(world, ada, rewritten, sha).moved
    assert world.sh("git rev-parse HEAD", ada.path) == rewritten


@pytest.mark.parametrize(
    "state",
    [
        "git commit -q --allow-empty -m mine",
        "echo x >> lines.txt",
        "echo x > new.txt",
        "git switch -q --detach",
        "echo x > bob.txt; echo bob.txt >> $(git rev-parse --git-path info/exclude)",
    ],
)
async def test_a_branch_with_anything_of_its_own_is_left_with_advice(world, state):
    _, ada, tip = await _landed(world)
    world.sh(state, ada.path)
    before = world.sh("git rev-parse HEAD && git status --porcelain && cat bob.txt || true", ada.path)
    synced = _sync(world, ada, tip)
    assert not synced.moved
    assert "git merge team/tip" in synced.text
    assert world.sh("git rev-parse HEAD && git status --porcelain && cat bob.txt || true", ada.path) == before


async def test_nothing_is_to_do_while_nothing_was_merged(world):
    ada = await world.agent(await world.depot(), "ada")
    assert sync_with_tip(ada.base_sha, place_of(ada), base=ada.base_sha, last_merged=None) is None
