"""The merge queue's core: events in, effects out."""

from __future__ import annotations

import pytest

from retinue.orchestrator.ledger.records import MergeIntended, WorkMerged, WorkReturned, WorkSubmitted
from retinue.orchestrator.merging.queue import (
    ATTEMPTS,
    RETURNS_EACH,
    AgentGone,
    Broke,
    Build,
    Built,
    Halt,
    Intend,
    Intended,
    Land,
    MergeQueue,
    Moved,
    MoveTip,
    Passed,
    Rejected,
    Resumed,
    Return,
    State,
    Submitted,
    TipElsewhere,
    Verify,
    Withdrawn,
)
from retinue.orchestrator.merging.recovery import recover
from retinue.tools.errors import InvariantBroken


def _submit(task: str, agent: str = "ada", sha: str = "s1") -> Submitted:
    return Submitted(task, agent, "work", sha)


def _queue(*tasks: str, lead: str | None = "lead") -> MergeQueue:
    queue = MergeQueue(tip="base", lead=lead)
    for task in tasks:
        queue.handle(_submit(task, f"agent-{task}"))
    return queue


def _one(effects):
    [effect] = effects
    return effect


def _reject(queue: MergeQueue, task: str) -> Return:
    found = [effect for effect in queue.handle(Rejected(task, "no", "why")) if isinstance(effect, Return)]
    return _one(found)


def test_a_submission_goes_all_the_way_and_the_intent_comes_before_the_move():
    queue = MergeQueue(tip="base")
    built = _one(queue.handle(_submit("1")))
    assert (type(built), built.item.task, built.tip) == (Build, "1", "base")
    verify = _one(queue.handle(Built("1", "c1")))
    assert (type(verify), verify.candidate) == (Verify, "c1")
    intend = _one(queue.handle(Passed("1")))
    assert (type(intend), intend.tip, intend.candidate) == (Intend, "base", "c1")
    move = _one(queue.handle(Intended("1")))
    assert (type(move), move.tip, move.candidate) == (MoveTip, "base", "c1")
    land = _one(queue.handle(Moved("1")))
    assert (type(land), land.tip, land.changed) == (Land, "c1", True)
    assert (queue.tip, queue.busy, queue.in_flight) == ("c1", False, None)
    assert queue.items["1"].state is State.LANDED


def test_nothing_to_merge_also_ends_as_landed_and_the_tip_stays():
    queue = _queue("1")
    land = _one(queue.handle(Built("1", None)))
    assert (land.changed, land.tip, queue.tip) == (False, "base", "base")


def test_one_at_a_time_in_the_order_of_submission():
    queue = _queue("1", "2", "3")
    assert queue.in_flight.task == "1"
    landed, build = queue.handle(Built("1", None))
    assert (landed.item.task, build.item.task) == ("1", "2")
    returned, build = queue.handle(Rejected("2", "conflict"))
    assert (returned.item.task, build.item.task) == ("2", "3")


def test_the_next_is_built_on_the_tip_that_the_last_one_made():
    queue = _queue("1", "2")
    for event in (Built("1", "c1"), Passed("1"), Intended("1")):
        queue.handle(event)
    _, build = queue.handle(Moved("1"))
    assert (build.item.task, build.tip) == ("2", "c1")


def test_who_was_sent_back_does_not_go_to_the_end_of_the_line():
    queue = _queue("1", "2", "3")
    queue.handle(Rejected("1", "conflict"))
    queue.handle(_submit("1", "agent-1", "s2"))
    _, build = queue.handle(Built("2", None))
    assert (build.item.task, build.item.sha) == ("1", "s2")


def test_a_submission_that_is_repeated_changes_nothing():
    queue = _queue("1", "2")
    before = dict(queue.items)
    assert queue.handle(_submit("1", "agent-1")) == []
    assert queue.handle(_submit("2", "agent-2")) == []
    assert queue.items == before


def test_a_waiting_submission_may_be_replaced_but_one_on_its_way_may_not():
    queue = _queue("1", "2")
    queue.handle(_submit("2", "agent-2", "s9"))
    assert queue.items["2"].sha == "s9"
    with pytest.raises(InvariantBroken, match="while it is building"):
        queue.handle(_submit("1", "agent-1", "s9"))
    queue.handle(Built("1", None))
    with pytest.raises(InvariantBroken, match="while it is landed"):
        queue.handle(_submit("1", "agent-1", "s9"))


def test_after_three_returns_the_lead_has_it_and_after_three_more_the_human():
    queue = MergeQueue(tip="base", lead="lead")
    holders = []
    for number in range(2 * RETURNS_EACH):
        queue.handle(_submit("1", "ada", f"s{number}"))
        holders.append(_reject(queue, "1").item.holder)
    assert holders == ["author", "author", "lead", "lead", "lead", "human"]
    assert queue.items["1"].returns == 2 * RETURNS_EACH


@pytest.mark.parametrize(
    ("lead", "author", "gone", "holder"),
    [
        ("lead", "ada", ["ada"], "lead"),
        (None, "ada", ["ada"], "human"),
        ("lead", "ada", ["ada", "lead"], "human"),
        ("lead", "lead", [], "author"),
        ("lead", "lead", ["lead"], "human"),
        ("lead", "ada", ["lead"], "author"),
    ],
)
def test_work_without_an_author_goes_to_the_lead_then_to_the_human(lead, author, gone, holder):
    queue = MergeQueue(tip="base", lead=lead)
    queue.handle(_submit("1", author))
    for agent in gone:
        queue.handle(AgentGone(agent))
    assert _reject(queue, "1").item.holder == holder


def test_work_that_was_sent_back_is_handed_on_when_its_holder_ends():
    queue = MergeQueue(tip="base", lead="lead")
    queue.handle(_submit("1", "ada"))
    _reject(queue, "1")
    assert queue.handle(AgentGone("bob")) == []
    handed = _one(queue.handle(AgentGone("ada")))
    assert (handed.item.holder, handed.item.returns) == ("lead", 1)
    assert _one(queue.handle(AgentGone("lead"))).item.holder == "human"
    assert queue.handle(AgentGone("ada")) == []


def test_what_the_machinery_fails_at_is_tried_again_and_then_halts_the_queue():
    queue = _queue("1", "2")
    for _ in range(ATTEMPTS - 1):
        build = _one(queue.handle(Broke("1", "disk full")))
        assert (type(build), build.item.task) == (Build, "1")
    halt = _one(queue.handle(Broke("1", "disk full")))
    assert isinstance(halt, Halt)
    assert "disk full" in halt.reason
    assert queue.handle(_submit("3")) == []
    assert queue.busy
    build = _one(queue.handle(Resumed("base")))
    assert (build.item.task, build.item.attempts) == ("1", 0)


def test_a_failed_write_or_move_is_repeated_and_not_built_anew():
    queue = _queue("1")
    queue.handle(Built("1", "c1"))
    queue.handle(Passed("1"))
    assert isinstance(_one(queue.handle(Broke("1", "disk full"))), Intend)
    queue.handle(Intended("1"))
    assert isinstance(_one(queue.handle(Broke("1", "lock held"))), MoveTip)


def test_a_tip_that_somebody_else_moved_halts_until_a_human_has_looked():
    queue = _queue("1", "2")
    for event in (Built("1", "c1"), Passed("1"), Intended("1")):
        queue.handle(event)
    assert "stranger" in _one(queue.handle(TipElsewhere("1", "stranger"))).reason
    assert queue.halted is not None
    build = _one(queue.handle(Resumed("stranger")))
    assert (build.item.task, build.tip) == ("1", "stranger")
    with pytest.raises(InvariantBroken, match="not halted"):
        queue.handle(Resumed("x"))


def test_a_withdrawn_task_leaves_the_queue_as_soon_as_its_work_in_hand_is_over():
    queue = _queue("1", "2", "3")
    assert queue.handle(Withdrawn("2")) == []
    assert queue.handle(Withdrawn("1")) == []
    assert queue.in_flight.task == "1"
    build = _one(queue.handle(Built("1", "c1")))
    assert build.item.task == "3"
    assert {queue.items[t].state for t in "12"} == {State.WITHDRAWN}
    assert queue.handle(Withdrawn("nobody")) == []


def test_what_is_about_to_land_lands_even_when_withdrawn():
    queue = _queue("1")
    for event in (Built("1", "c1"), Passed("1"), Withdrawn("1"), Intended("1"), Moved("1")):
        queue.handle(event)
    assert queue.items["1"].state is State.LANDED
    assert queue.handle(Withdrawn("1")) == []


STEPS = (Built("1", "c"), Rejected("1", "r"), Passed("1"), Intended("1"), Moved("1"), TipElsewhere("1", "x"))
LEGAL = {
    State.BUILDING: (Built, Rejected),
    State.VERIFYING: (Rejected, Passed),
    State.INTENDING: (Intended,),
    State.LANDING: (Moved, TipElsewhere),
}
WAY = {
    State.BUILDING: (),
    State.VERIFYING: (Built("1", "c"),),
    State.INTENDING: (Built("1", "c"), Passed("1")),
    State.LANDING: (Built("1", "c"), Passed("1"), Intended("1")),
    State.LANDED: (Built("1", None),),
    State.RETURNED: (Rejected("1", "r"),),
}


@pytest.mark.parametrize("state", list(WAY))
@pytest.mark.parametrize("event", STEPS, ids=lambda event: type(event).__name__)
def test_an_illegal_event_raises_and_changes_nothing(state, event):
    queue = _queue("1")
    for step in WAY[state]:
        queue.handle(step)
    assert queue.items["1"].state is state
    before = (dict(queue.items), queue.tip, queue.halted)
    if isinstance(event, LEGAL.get(state, ())):
        assert queue.handle(event) != []
        return
    with pytest.raises(InvariantBroken):
        queue.handle(event)
    assert (dict(queue.items), queue.tip, queue.halted) == before


# --- after a restart --------------------------------------------------------------------------------------------------


def _sent(task: str, agent: str = "ada", sha: str = "s1") -> WorkSubmitted:
    return WorkSubmitted(task_id=task, agent=agent, branch="work", sha=sha)


def _merged(task: str, tip: str, changed: bool = True) -> WorkMerged:
    return WorkMerged(task_id=task, agent="ada", sha="s1", tip=tip, changed=changed)


def _returned(task: str) -> WorkReturned:
    return WorkReturned(task_id=task, agent="ada", sha="s1", reason="no", output="")


INTENT = MergeIntended(task_id="1", tip="base", candidate="c1")


def test_nothing_recorded_means_an_empty_queue_at_the_base():
    queue, effects = recover([], base="base", actual_tip="base")
    assert (queue.items, queue.tip, effects) == ({}, "base", [])


def test_what_was_not_intended_is_built_again():
    queue, effects = recover([_sent("1"), _sent("2")], base="base", actual_tip="base")
    assert (_one(effects).item.task, _one(effects).tip, queue.in_flight.task) == ("1", "base", "1")


def test_an_intent_whose_move_happened_is_landed_and_the_next_begins():
    queue, effects = recover([_sent("1"), _sent("2"), INTENT], base="base", actual_tip="c1")
    land, build = effects
    assert (land.item.task, land.tip, land.changed) == ("1", "c1", True)
    assert (build.item.task, build.tip) == ("2", "c1")
    assert queue.tip == "c1"


def test_an_intent_whose_move_did_not_happen_is_carried_out():
    queue, effects = recover([_sent("1"), INTENT], base="base", actual_tip="base")
    move = _one(effects)
    assert (type(move), move.tip, move.candidate) == (MoveTip, "base", "c1")
    assert _one(queue.handle(Moved("1"))).tip == "c1"


@pytest.mark.parametrize("records", [[], [_sent("1")], [_sent("1"), INTENT]])
def test_a_tip_that_the_ledger_does_not_explain_halts_the_queue(records):
    queue, effects = recover(records, base="base", actual_tip="stranger")
    assert "stranger" in _one(effects).reason
    assert queue.halted is not None
    queue.handle(Resumed("stranger"))
    assert queue.tip == "stranger"


def test_a_tip_that_a_human_has_accepted_is_known_from_the_next_intent():
    accepted = MergeIntended(task_id="1", tip="stranger", candidate="c2")
    _, effects = recover([_sent("1"), INTENT, accepted], base="base", actual_tip="stranger")
    assert (type(_one(effects)), _one(effects).candidate) == (MoveTip, "c2")


def test_what_landed_stays_landed_and_returns_are_counted_on():
    records = [_sent("1"), INTENT, _merged("1", "c1"), _sent("2"), _returned("2"), _sent("2", sha="s2"), _returned("2")]
    queue, effects = recover(records, base="base", actual_tip="c1", lead="lead")
    assert effects == []
    assert (queue.items["1"].state, queue.items["2"].holder, queue.items["2"].returns) == (State.LANDED, "author", 2)
    queue.handle(_submit("2", sha="s3"))
    assert _reject(queue, "2").item.holder == "lead"


def test_deleted_tasks_and_ended_agents_are_known_after_a_restart():
    records = [_sent("1"), _sent("2"), _returned("2")]
    queue, effects = recover(records, base="base", actual_tip="base", lead="lead", gone=["ada"], withdrawn=["1"])
    assert effects == []
    assert (queue.items["1"].state, queue.items["2"].holder) == (State.WITHDRAWN, "lead")


def test_a_ledger_that_cannot_be_is_a_bug_and_said_so():
    with pytest.raises(InvariantBroken, match="before it was submitted"):
        recover([INTENT], base="base", actual_tip="base")
