"""Checkpoints: what is in a worktree is recorded without trusting the worktree."""

from __future__ import annotations

import asyncio

from retinue.orchestrator.workspaces import names


def _files(world, depot, sha: str) -> str:
    return world.sh(f"git --git-dir={depot.paths.depot} ls-tree -r --name-only {sha}")


async def test_a_checkpoint_holds_changed_new_and_deleted_files_but_no_ignored_ones(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    assert await depot.checkpoint("ada") is None
    world.write("lines.txt", "changed\n", where=ada.path)
    world.write("deep/new file.txt", "new\n", where=ada.path)
    world.write("noise.log", "noise\n", where=ada.path)
    (ada.path / "src/app.py").unlink()
    sha = await depot.checkpoint("ada")
    assert _files(world, depot, sha).splitlines() == [".gitignore", "deep/new file.txt", "lines.txt"]
    assert await depot.commit_of(names.checkpoint_ref("ada")) == sha
    assert await depot.checkpoint("ada") is None


async def test_checkpoints_form_a_line_and_leave_the_agents_own_git_alone(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write("lines.txt", "staged\n", where=ada.path)
    world.sh("git add lines.txt", ada.path)
    world.write("lines.txt", "worked on\n", where=ada.path)
    first = await depot.checkpoint("ada")
    assert world.sh("git status --porcelain", ada.path) == "MM lines.txt"
    world.commit({"lines.txt": "more\n"}, where=ada.path)
    second = await depot.checkpoint("ada")
    assert world.sh(f"git --git-dir={depot.paths.depot} rev-list --reverse {second}").split()[1:] == [first, second]
    assert await depot.tip() == depot.facts.base_sha


async def test_two_checkpoints_at_once_make_one(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write("lines.txt", "changed\n", where=ada.path)
    both = await asyncio.gather(depot.checkpoint("ada"), depot.checkpoint("ada"))
    assert sorted(sha is None for sha in both) == [False, True]


async def test_a_lost_index_costs_time_but_nothing_else(world):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    world.write("new.txt", "new\n", where=ada.path)
    depot.paths.index("ada").unlink()
    assert "new.txt" in _files(world, depot, await depot.checkpoint("ada"))


async def test_a_nested_repository_is_left_out_and_nothing_that_it_names_is_run(world, canary):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    evil = world.top / "evil"
    world.sh(
        f"git init -q nested && cd nested && git -c user.name=n -c user.email=e commit -q --allow-empty -m x "
        f"&& echo '* filter=bad' > .gitattributes && git config core.fsmonitor {evil} "
        f"&& git config filter.bad.clean {evil} "
        f"&& mkdir -p .git/hooks && cp {evil} .git/hooks/post-index-change && touch file",
        ada.path,
    )
    world.write("new.txt", "new\n", where=ada.path)
    sha = await depot.checkpoint("ada")
    assert "new.txt" in _files(world, depot, sha)
    assert "nested" not in _files(world, depot, sha)
    world.write("new.txt", "newer\n", where=ada.path)
    assert await depot.checkpoint("ada") is not None
    assert not canary()


async def test_a_replaced_git_folder_is_never_looked_into(world, canary):
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    evil = world.top / "evil"
    world.sh(
        f"rm .git && git init -q . && git config core.fsmonitor {evil} && git config core.hooksPath {world.top} "
        f"&& git config filter.bad.clean {evil} && echo '* filter=bad' > .gitattributes",
        ada.path,
    )
    world.write("new.txt", "new\n", where=ada.path)
    sha = await depot.checkpoint("ada")
    assert "new.txt" in _files(world, depot, sha)
    assert not canary()


async def test_a_submodule_that_the_base_records_stays_as_it_was_recorded(world, canary):
    world.sh("git init -q ../lib && git -C ../lib -c user.name=n -c user.email=e commit -q --allow-empty -m lib")
    world.sh("git -c protocol.file.allow=always submodule --quiet add ../lib lib && git commit -qm sub")
    depot = await world.depot()
    ada = await world.agent(depot, "ada")
    recorded = world.sh("git ls-tree HEAD lib")
    world.sh(f"rm -rf lib && git init -q lib && git -C lib config core.fsmonitor {world.top}/evil", ada.path)
    world.write("new.txt", "new\n", where=ada.path)
    sha = await depot.checkpoint("ada")
    assert world.sh(f"git --git-dir={depot.paths.depot} ls-tree {sha} lib") == recorded
    assert not canary()
