"""A long sleep holds up no end of a run: who sleeps while all others rest is woken after a while."""

from __future__ import annotations

import pytest

from retinue.agents.boot import AgentStatus
from retinue.orchestrator.team.sleepers import WAKE_S, Sleepers, Wake
from retinue.tools.ports import TaskView


def status(agent: str, state: str, **more: object) -> AgentStatus:
    return AgentStatus.model_validate({"agent": agent, "incarnation": 1, "state": state, **more})


ADA = status("ada~1", "waiting", asleep=True, turn=2, step=5)
BOB = status("bob~1", "idle", turn=1)


def test_a_sleeper_is_left_alone_for_a_while_and_woken_then() -> None:
    sleepers = Sleepers()
    assert sleepers.look([ADA, BOB], [], 100.0) == ((), WAKE_S)
    assert sleepers.look([ADA, BOB], [], 130.0) == ((), WAKE_S - 30)
    assert sleepers.look([ADA, BOB], [], 100.0 + WAKE_S) == ((Wake("ada~1", "wake/1/2/5"),), None)


def test_another_sleep_is_left_alone_as_long() -> None:
    sleepers = Sleepers()
    sleepers.look([ADA, BOB], [], 0.0)
    later = ADA.model_copy(update={"step": 6})
    assert sleepers.look([later, BOB], [], 59.0) == ((), WAKE_S)


@pytest.mark.parametrize(
    "others",
    [[], [status("bob~1", "working")], [status("bob~1", "waiting")], [status("bob~1", "idle", unread=1)]],
    ids=["alone", "working", "waiting", "unread"],
)
def test_nobody_is_woken_who_is_alone_or_while_something_goes_on(others: list[AgentStatus]) -> None:
    sleepers = Sleepers()
    assert [sleepers.look([ADA, *others], [], now) for now in (0.0, 1_000.0)] == [((), None)] * 2


def test_nobody_is_woken_while_a_task_is_open() -> None:
    sleepers = Sleepers()
    open_task = TaskView(id="1", subject="x", status="in_progress", owner="ada")
    assert sleepers.look([ADA, BOB], [open_task], 0.0) == ((), None)
    assert sleepers.look([ADA, BOB], [open_task.model_copy(update={"status": "done"})], 0.0) == ((), WAKE_S)


def test_without_a_sleeper_there_is_nobody_to_wake() -> None:
    assert Sleepers().look([BOB], [], 0.0) == ((), None)
