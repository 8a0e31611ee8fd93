"""A running team with puppets for agents: what it starts, keeps, hands out, and when it ends."""

from __future__ import annotations

import asyncio

import pytest

from retinue.agents.mail.envelopes import Envelope, Notice, TaskAssigned, Text
from retinue.orchestrator.ledger.records import (
    AgentEnded,
    AgentLost,
    BackgroundAsked,
    IncarnationStarted,
    PhaseChanged,
    Reminded,
)
from retinue.orchestrator.runtime.port import AgentOutcome
from retinue.orchestrator.team.board import Submission
from retinue.orchestrator.team.ending import ASK_S, PATIENCE_S
from retinue.orchestrator.team.service import Ended
from retinue.tools.ports import ChildRequest, TaskChange, TaskView
from support.teams import Puppet, Stage, stage

WORK = Submission("retinue/r/ada.1/work", "b" * 40)


async def opened(team: Stage, *names: str) -> list[Puppet]:
    await team.open()
    return [await team.theatre.wait_for(name, 1) for name in names]


async def until_mail(puppet: Puppet, count: int) -> None:
    async with asyncio.timeout(5):
        await puppet.has_mail(count)


async def claim_and_hand_in(team: Stage, agent: str, task: str) -> None:
    await team.service.update_task(agent, f"{task}/claim", TaskChange(task_id=task, status="in_progress"), None)
    await team.service.update_task(agent, f"{task}/done", TaskChange(task_id=task, status="completed"), WORK)


async def merged(team: Stage, task: str) -> None:
    team.merges.busy = False
    await team.service.tasks_changed([team.service.core.state.board.merged(task, WORK.sha)])


async def test_owners_of_ready_tasks_are_told_once_and_the_run_ends_when_all_is_merged() -> None:
    team = stage(
        ["ada", "ben"],
        [
            TaskView(id="a", subject="A", owner="ada", blocks=("b",)),
            TaskView(id="b", subject="B", owner="ben", blocked_by=("a",)),
        ],
    )
    ada, ben = await opened(team, "ada", "ben")
    await until_mail(ada, 1)
    assert [m.body for m in ada.mail] == [TaskAssigned(task_id="a", subject="A")]
    assert ben.mail == []
    await claim_and_hand_in(team, "ada~1", "a")
    assert team.merges.submitted == [("a", "ada~1", WORK)]
    await team.rest(ada, ben)
    await merged(team, "a")
    await until_mail(ben, 1)
    await claim_and_hand_in(team, "ben~1", "b")
    await team.rest(ada, ben)
    await merged(team, "b")
    async with asyncio.timeout(5):
        await team.service.finished.wait()
    last = team.journal.of(PhaseChanged)[-1]
    assert (last.phase, last.detail) == ("done", "2 tasks merged or done; the work is on retinue/r/result")
    assert team.finished == [True]
    assert ada.drained
    assert ben.drained
    await team.service.core.close()


async def test_nothing_ends_while_the_merge_queue_is_busy_or_an_agent_has_a_turn() -> None:
    team = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")])
    (ada,) = await opened(team, "ada")
    await until_mail(ada, 1)
    await claim_and_hand_in(team, "ada~1", "a")
    await team.rest(ada)
    await asyncio.sleep(0.01)
    assert not team.service.finished.is_set()
    await team.service.core.close()


async def test_an_owner_that_rests_with_open_work_is_reminded_twice_and_then_the_run_fails() -> None:
    team = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")])
    (ada,) = await opened(team, "ada")
    await until_mail(ada, 1)
    await team.rest(ada)
    await team.journal.wait_for(Reminded)
    await until_mail(ada, 2)
    assert isinstance(ada.mail[1].body, Notice)
    await team.rest(ada)
    await team.journal.wait_for(Reminded, 2)
    await until_mail(ada, 3)
    await team.rest(ada)
    async with asyncio.timeout(5):
        await team.service.finished.wait()
    assert team.finished == [False]
    assert "stopped working on it after 2 reminders" in team.journal.of(PhaseChanged)[-1].detail
    await team.service.core.close()


async def test_a_lost_agent_comes_back_and_mail_meanwhile_is_kept_for_it() -> None:
    team = stage(["ada"], [])
    (ada,) = await opened(team, "ada")
    ada.die()
    letter = Envelope(id="m1", sender="ben~1", recipient="ada~1", body=Text(text="hello"))
    receipt = await team.service.deliver(letter)
    assert receipt.outcome == "stored"
    second = await team.theatre.wait_for("ada", 2)
    assert [m.id for m in second.mail] == ["m1"]
    assert [r.how for r in team.journal.of(AgentLost)] == ["its process died"]
    assert [r.incarnation for r in team.journal.of(IncarnationStarted)] == [1, 2]
    await team.service.core.close()


async def test_an_agent_that_keeps_dying_is_given_up_and_its_work_is_free() -> None:
    team = stage(["ada", "ben"], [TaskView(id="a", subject="A", owner="ada", status="in_progress")])
    await team.open()
    for incarnation in range(1, 7):
        (await team.theatre.wait_for("ada", incarnation)).die()
    ended = await team.journal.wait_for(AgentEnded)
    assert (ended.agent, ended.why.split(" within")[0]) == ("ada~1", "lost 5 times")
    ben = await team.theatre.wait_for("ben", 1)
    await team.rest(ben)
    await until_mail(ben, 1)
    assert ben.mail[0].body == TaskAssigned(task_id="a", subject="A")
    await team.service.core.close()


async def test_mail_to_nobody_names_who_is_there() -> None:
    team = stage(["ada", "ben"], [])
    await opened(team, "ada", "ben")
    assert (await team.service.resolve("ada~1", "zoe")).refusal == "no such agent: zoe. Agents: ada, ben."
    everybody = await team.service.resolve("ada~1", "*")
    assert [(a.name, a.incarnation) for a in everybody.addresses] == [("ben", 1)]
    await team.service.core.close()


async def test_a_stopped_agent_gives_its_work_back_and_gets_no_mail() -> None:
    team = stage(["ada", "ben"], [TaskView(id="a", subject="A", owner="ada", status="in_progress")])
    await opened(team, "ada", "ben")
    assert await team.service.stop_agent("ada") == "drained"
    task = await team.service.get_task("a")
    assert task is not None
    assert (task.status, task.owner) == ("pending", None)
    letter = Envelope(id="m", sender="ben~1", recipient="ada~1", body=Text(text="?"))
    assert (await team.service.deliver(letter)).outcome == "no_such_agent"
    await team.service.core.close()


async def test_draining_stops_resumably() -> None:
    team = stage(["ada", "ben"], [TaskView(id="a", subject="A", owner="ada")])
    await opened(team, "ada", "ben")
    assert await team.service.drain() == {"ada~1": "drained", "ben~1": "drained"}
    assert [p.phase for p in team.journal.of(PhaseChanged)] == ["draining", "stopped"]
    assert team.service.finished.is_set()


@pytest.mark.parametrize("asks", [1, 2])
async def test_a_child_is_started_once_for_one_call_and_its_end_is_its_result(asks: int) -> None:
    team = stage(["ada"], [])
    await opened(team, "ada")
    request = ChildRequest(definition="explore", description="look", prompt="Where is the parser?")
    started = [await team.service.start_child("ada~1", "call-1", request) for _ in range(asks)]
    assert len({s.agent for s in started}) == 1
    child = team.theatre.started[-1]
    assert (child.boot.role, child.boot.parent, child.boot.depth) == ("child", "ada~1", 1)
    assert await team.service.await_child(started[0].agent, 0.0) is None
    child.end.set_result(AgentOutcome(lost=False, how="done", reason="done", text="In parser.py."))
    outcome = await team.service.await_child(started[0].agent, 5.0)
    assert outcome is not None
    assert (outcome.ok, outcome.text) == (True, "In parser.py.")
    await team.service.core.close()


async def test_the_wall_limit_ends_a_run_that_waits_for_nothing() -> None:
    team = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")], wall_s=0.01)
    await opened(team, "ada")
    async with asyncio.timeout(5):
        await team.service.finished.wait()
    last = team.journal.of(PhaseChanged)[-1]
    assert (last.phase, last.detail.split(";")[0]) == ("failed", "the run has used its 0 s (limits.wall)")
    await team.service.core.close()


async def looked(team: Stage) -> None:
    """The team has looked at its agents after the last change."""
    team.service.core.alarm = None
    team.service.core.stir()
    for _ in range(1_000):
        if not team.service.core.bell.is_set() and team.service.core.alarm is not None:
            return
        await asyncio.sleep(0)
    raise AssertionError("it waits for nothing")


async def test_a_server_keeps_no_run_open_and_is_stopped_before_the_work_is_taken() -> None:
    team = stage(["ada", "ben"], [])
    clock = [0.0]
    team.service.core.now = lambda: clock[0]
    ada, ben = await opened(team, "ada", "ben")
    ada.background = {"b1": "npm run dev"}
    await team.rest(ada, ben)
    await looked(team)
    assert ada.mail == []
    clock[0] = ASK_S
    team.service.core.stir()
    await until_mail(ada, 1)
    (asked,) = ada.mail
    assert isinstance(asked.body, Notice)
    assert "- b1 (npm run dev)" in asked.body.text
    assert await team.journal.wait_for(BackgroundAsked) == BackgroundAsked(agent="ada~1", tasks=("b1",))
    taken: list[tuple[bool, bool]] = []
    on_finish = team.service._on_finish

    async def take(ok: bool) -> Ended:
        taken.append((ada.drained, ben.drained))
        return await on_finish(ok)

    team.service._on_finish = take
    await team.rest(ada, ben)
    async with asyncio.timeout(5):
        await team.service.finished.wait()
    assert taken == [(True, False)]
    assert team.finished == [True]
    assert team.journal.of(AgentEnded) == []


async def test_an_owner_with_a_command_in_the_background_is_reminded_late() -> None:
    team = stage(["ada"], [TaskView(id="a", subject="A", owner="ada")])
    clock = [0.0]
    team.service.core.now = lambda: clock[0]
    (ada,) = await opened(team, "ada")
    await until_mail(ada, 1)
    await team.service.update_task("ada~1", "c", TaskChange(task_id="a", status="in_progress"), None)
    ada.background = {"b1": "make"}
    await team.rest(ada)
    await looked(team)
    clock[0] = PATIENCE_S - 1
    await looked(team)
    assert team.journal.of(Reminded) == []
    clock[0] = PATIENCE_S
    team.service.core.stir()
    await until_mail(ada, 2)
    assert len(team.journal.of(Reminded)) == 1
    await team.service.drain()
