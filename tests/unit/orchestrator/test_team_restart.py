"""The team's process dies between any two of its records: what its next one finds and finishes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from retinue.agents.mail.envelopes import Envelope, TaskReturned, Text
from retinue.orchestrator.ledger.records import (
    IncarnationStarted,
    PhaseChanged,
    TaskChanged,
    WorkMerged,
    WorkReturned,
    WorkSubmitted,
)
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.orchestrator.merging.queue import Build
from retinue.orchestrator.merging.recovery import recover
from retinue.orchestrator.merging.verify import CommandRunner
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.team.journal import recover_team
from retinue.orchestrator.team.merges import MergeDriver
from retinue.orchestrator.team.uptime import Uptime
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.ports import ChildRequest, TaskView
from support.teams import Puppet, Stage, stage, successor

WORK = "b" * 40
BASE = "a" * 40


async def opened(team: Stage, *names: str) -> list[Puppet]:
    await team.open()
    return [await team.theatre.wait_for(name, 1) for name in names]


async def died(team: Stage) -> None:
    """What is left of a process that was killed: nothing but the ledger."""
    await team.service.core.close()


# --- agents -----------------------------------------------------------------------------------------------------------


async def test_agents_that_live_are_kept_and_mail_for_them_goes_to_their_process() -> None:
    first = stage(["ada", "ben"], [TaskView(id="a", subject="A", owner="ada")])
    ada, _ = await opened(first, "ada", "ben")
    await died(first)
    ada.mail.clear()
    second = successor(first)
    await second.open(restarted=True)
    async with asyncio.timeout(5):
        await ada.has_mail(1)
    assert [m.id for m in ada.mail] == ["assign/a/ada"]
    assert [r.incarnation for r in first.journal.of(IncarnationStarted)] == [1, 1]
    await second.service.core.close()


async def test_an_agent_that_rested_already_keeps_no_run_from_its_end() -> None:
    first = stage(["ada"], [])
    await opened(first, "ada")
    await died(first)
    second = successor(first)
    await second.open(restarted=True)
    async with asyncio.timeout(5):
        await second.service.finished.wait()
    assert first.journal.of(PhaseChanged)[-1].phase == "done"


async def test_an_agent_that_does_not_answer_is_killed_before_its_next_incarnation_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = stage(["ada"], [])
    (ada,) = await opened(first, "ada")
    await died(first)

    async def silent(_self: Puppet) -> None:
        raise Unreachable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(Puppet, "state", silent)
        second = successor(first)
        await second.open(restarted=True)
    assert (await ada.ended()).how == "killed"
    assert [r.incarnation for r in first.journal.of(IncarnationStarted)] == [1, 2]
    await second.service.core.close()


async def test_a_child_that_was_recorded_and_not_started_gets_its_process_and_its_prompt() -> None:
    first = stage(["ada"], [])
    await opened(first, "ada")
    request = ChildRequest(definition="explore", description="look", prompt="Where is the parser?")
    started = await first.service.start_child("ada~1", "call-1", request)
    await died(first)
    first.theatre.started[-1].die()
    second = successor(first)
    await second.open(restarted=True)
    again = await second.service.start_child("ada~1", "call-1", request)
    child = first.theatre.started[-1]
    assert (again.agent, child.boot.agent, child.boot.incarnation) == (started.agent, started.agent, 2)
    assert [m.id for m in child.mail] == [f"{started.agent}/prompt"]
    await second.service.core.close()


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "restarted"), [("done", True), ("failed", False), ("stopped", True)])
async def test_a_run_that_had_ended_is_not_begun_again(phase: str, restarted: bool) -> None:
    first = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")])
    (ada,) = await opened(first, "ada")
    await died(first)
    await first.journal.record(PhaseChanged.model_validate({"phase": phase}))
    second = successor(first)
    await second.open(restarted=restarted)
    assert second.service.finished.is_set()
    assert ada.drained
    assert first.journal.of(PhaseChanged)[-1].phase == phase


async def test_a_drain_that_was_cut_off_is_finished_by_the_next_process_and_undone_by_a_resume() -> None:
    first = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")])
    await opened(first, "ada")
    await died(first)
    await first.journal.record(PhaseChanged(phase="draining"))
    second = successor(first)
    await second.open(restarted=True)
    assert [p.phase for p in first.journal.of(PhaseChanged)] == ["draining", "stopped"]
    third = successor(first)
    await third.open()
    assert first.journal.of(PhaseChanged)[-1].phase == "running"
    await third.service.core.close()


# --- the queue and the board ------------------------------------------------------------------------------------------


@dataclass
class Host:
    """Implements `MergeHost`."""

    changed: list[TaskView] = field(default_factory=list)
    mail: list[tuple[str, TaskReturned]] = field(default_factory=list)

    async def tasks_changed(self, tasks: Sequence[TaskView], by: str = "team") -> None:
        assert by == "team"
        self.changed += tasks

    async def returned(self, holder: str, agent: str, mail_id: str, body: TaskReturned) -> None:
        assert holder == "author"
        assert agent == "ada~1"
        self.mail.append((mail_id, body))

    async def queue_halted(self, reason: str) -> None:
        raise AssertionError(reason)


async def caught_up(team: Stage) -> tuple[MergeDriver, Host]:
    core = successor(team).service.core
    queue, effects = recover(core.state.queue, base=BASE, actual_tip=BASE)

    async def mirror(tip: str) -> None:
        raise AssertionError(f"nothing landed, and {tip} is shown")

    host = Host()
    driver = MergeDriver(core, cast(Depot, None), queue, cast(CommandRunner, None), mirror, host)
    driver.push(effects)
    await driver.catch_up()
    return driver, host


def handed_in() -> tuple[Stage, TaskChanged, WorkSubmitted]:
    task = TaskView(id="a", subject="A", owner="ada", status="verifying", branch="retinue/r/ada.1/work", sha=WORK)
    team = stage(["ada"], [])
    return (
        team,
        TaskChanged(task=task, by="ada"),
        WorkSubmitted(task_id="a", agent="ada~1", branch="retinue/r/ada.1/work", sha=WORK),
    )


async def test_work_that_was_accepted_and_not_yet_queued_is_queued() -> None:
    team, accepted, submitted = handed_in()
    await team.journal.record(accepted)
    driver, _ = await caught_up(team)
    assert team.journal.of(WorkSubmitted) == [submitted]
    assert [type(effect) for effect in driver.effects] == [Build]


async def test_work_that_is_queued_is_queued_once() -> None:
    team, accepted, submitted = handed_in()
    await team.journal.record(accepted, submitted)
    driver, host = await caught_up(team)
    assert team.journal.of(WorkSubmitted) == [submitted]
    assert [type(effect) for effect in driver.effects] == [Build]
    assert host.changed == []


async def test_work_that_has_landed_is_merged_on_the_board() -> None:
    team, accepted, submitted = handed_in()
    landed = WorkMerged(task_id="a", agent="ada~1", sha=WORK, tip=BASE, changed=False)
    await team.journal.record(accepted, submitted, landed)
    _, host = await caught_up(team)
    assert [(t.id, t.status, t.sha) for t in host.changed] == [("a", "merged", WORK)]


@pytest.mark.parametrize("known", [False, True])
async def test_work_that_was_sent_back_is_sent_back_with_the_same_mail(known: bool) -> None:
    """Whether the board had heard of it or not; the mailbox drops what it has."""
    team, accepted, submitted = handed_in()
    back = WorkReturned(task_id="a", agent="ada~1", sha=WORK, reason="done_when", output="1 failed")
    await team.journal.record(accepted, submitted, back)
    if known:
        task = accepted.task.model_copy(update={"status": "in_progress", "returns": 1})
        await team.journal.record(TaskChanged(task=task, by="team"))
    _, host = await caught_up(team)
    assert [(t.status, t.returns) for t in host.changed] == ([] if known else [("in_progress", 1)])
    ((mail_id, body),) = host.mail
    assert mail_id == "returned/a/1/author"
    assert (body.reason, body.output, body.returns) == ("done_when", "done_when\n1 failed", 1)


# --- time -------------------------------------------------------------------------------------------------------------


def test_time_without_a_team_does_not_count() -> None:
    uptime = Uptime(((100.0, 60.0), (200.0, 30.0)))
    assert uptime.since(0.0, 210.0) == 120.0
    assert uptime.since(150.0, 210.0) == 30.0
    assert uptime.since(205.0, 210.0) == 5.0


def test_the_gap_before_each_process_of_the_team_is_read_off_the_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.rlog"
    clock = iter([0.0, 10.0, 110.0, 120.0])
    letter = Envelope(id="m", sender="human", recipient="ada~1", body=Text(text="hello"))
    for incarnation in (1, 2):
        writer = LedgerWriter.open(ledger, "team", incarnation, lambda: next(clock))
        writer.append_sync("mail_stored", {"envelope": letter.model_dump()})
        writer.close()
    found = recover_team(ledger, 300.0)
    assert found.started_at == 0.0
    assert found.uptime.gaps == ((110.0, 100.0), (300.0, 180.0))
    assert found.uptime.since(0.0, 300.0) == 20.0
