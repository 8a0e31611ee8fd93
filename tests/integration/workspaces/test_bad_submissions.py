"""What an agent did to its repository comes back to it, and the queue goes on; the machine's trouble halts it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from retinue.orchestrator.ledger.records import WorkSubmitted
from retinue.orchestrator.merging.queue import MergeQueue
from retinue.orchestrator.merging.verify import CommandRunner
from retinue.orchestrator.team.board import Submission
from retinue.orchestrator.team.merges import MergeDriver
from retinue.orchestrator.workspaces.git import Git, GitError, Identity
from retinue.tools.ports import TaskView
from support.teams import stage


@dataclass
class Host:
    """Implements `MergeHost`."""

    changed: list[TaskView] = field(default_factory=list)
    mail: list[tuple[str, str, str]] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def tasks_changed(self, tasks, by="team"):
        self.changed += tasks
        if tasks[-1].status == "merged":
            self.settled.set()

    async def returned(self, holder, agent, mail_id, body):
        self.mail.append((holder, agent, body.output))
        self.settled.set()

    async def queue_halted(self, reason):
        self.halted.append(reason)
        self.settled.set()


@dataclass
class Queue:
    driver: MergeDriver
    host: Host

    async def hand_in(self, agent: str, branch: str, sha: str) -> None:
        task = agent.split("~", maxsplit=1)[0]
        await self.driver.core.record(WorkSubmitted(task_id=task, agent=agent, branch=branch, sha=sha))
        self.driver.submit(task, agent, Submission(branch, sha))
        running = asyncio.create_task(self.driver.run())
        async with asyncio.timeout(30):
            await self.host.settled.wait()
        self.host.settled.clear()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _queue(world):
    depot = await world.depot()
    await depot.add_agent("ada~1", Identity("ada", "ada@team"))
    await depot.add_agent("bob~1", Identity("bob", "bob@team"))
    tasks = [TaskView(id=n, subject=n, owner=n, status="verifying", branch="b", sha="c" * 40) for n in ("ada", "bob")]
    core = stage(["ada", "bob"], tasks).service.core

    async def mirror(_tip):
        return None

    host = Host()
    return depot, Queue(
        MergeDriver(core, depot, MergeQueue(tip=depot.facts.base_sha), cast(CommandRunner, None), mirror, host), host
    )


SPOILED = {
    "missing ref": ("rm .git; git init -q -b main", "couldn't find remote ref refs/heads/main"),
    "corrupt object": (
        "f=$D/objects/$(git rev-parse HEAD: | sed 's,^..,&/,'); chmod u+w $f; echo rubbish > $f",
        "fatal",
    ),
    "missing object": ("rm -f $D/objects/$(git rev-parse HEAD: | sed 's,^..,&/,')", "fatal"),
    "malformed object": (
        "t=$(git mktree --missing <<< '100644 blob 1111111111111111111111111111111111111111\t.git');"
        "git update-ref refs/heads/$B $(git commit-tree $t -p HEAD -m x)",
        "fatal",
    ),
    "no repository": ("rm -rf $D", "cannot be put back"),
    "half a repository": ("rm -rf $D/objects $D/refs", "not appear to be a git repository"),
    "a folder among its hooks": ("mkdir -p $D/hooks/folder", "cannot be put back"),
}


@pytest.mark.parametrize("spoiled", list(SPOILED))
async def test_work_that_cannot_be_taken_comes_back_and_others_work_lands(world, spoiled):
    depot, queue = await _queue(world)
    ada, bob = depot.workspace("ada~1"), depot.workspace("bob~1")
    sha = world.commit({"a.txt": "a\n"}, where=ada.path)
    script, told = SPOILED[spoiled]
    world.sh(f"D={ada.git_dir} B={ada.branch}; {script}", ada.path)
    await queue.hand_in("ada~1", "main" if spoiled == "missing ref" else ada.branch, sha)
    assert queue.host.halted == []
    ((holder, agent, text),) = queue.host.mail
    assert (holder, agent) == ("author", "ada~1")
    assert text.startswith("nothing_submitted")
    assert told in text
    assert queue.driver.core.state.board.tasks["ada"].status == "in_progress"
    good = world.commit({"b.txt": "b\n"}, where=bob.path)
    await queue.hand_in("bob~1", bob.branch, good)
    assert (queue.host.halted, await depot.commit_of(f"{await depot.tip()}^2")) == ([], good)
    assert queue.host.changed[-1].status == "merged"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("echo 'fatal: write error: No space left on device' >&2; exit 128", "No space left on device"),
        ("kill -9 $$", "exit code -9"),
        (None, "could not be started"),
    ],
)
async def test_the_machines_trouble_halts_the_queue_and_is_nobodys_work(world, trouble, said):
    depot, queue = await _queue(world)
    ada = depot.workspace("ada~1")
    sha = world.commit({"a.txt": "a\n"}, where=ada.path)
    folder = world.top / "bin"
    folder.mkdir()
    if trouble:
        (folder / "git").write_text(f"#!/bin/sh\n{trouble}\n")
        (folder / "git").chmod(0o755)
    depot.git = Git(search_path=str(folder))
    await queue.hand_in("ada~1", ada.branch, sha)
    assert queue.host.mail == []
    (reason,) = queue.host.halted
    assert said in reason


async def test_a_depot_that_is_not_whole_is_nobodys_work(world):
    depot, queue = await _queue(world)
    ada = depot.workspace("ada~1")
    sha = world.commit({"a.txt": "a\n"}, where=ada.path)
    world.sh(f"mv .git/objects/{depot.facts.base_sha[:2]} gone")
    with pytest.raises(GitError):
        await depot.take("ada~1", ada.branch, sha)
    await queue.hand_in("ada~1", ada.branch, sha)
    assert (queue.host.mail, len(queue.host.halted)) == ([], 1)
