"""What the team does when its agents have come to rest."""

from __future__ import annotations

from retinue.orchestrator.team.ending import (
    ASK_S,
    PATIENCE_S,
    AskAbout,
    Assign,
    Finish,
    GiveUp,
    Remind,
    Rest,
    Resting,
    Wait,
    at_rest,
    hand_out,
)
from retinue.tools.ports import TaskStatus, TaskView


def task(task_id: str, status: TaskStatus = "pending", owner: str | None = None, *blockers: str) -> TaskView:
    return TaskView(
        id=task_id, subject=task_id, status=status, owner=owner, blocked_by=blockers, open_blockers=blockers
    )


ADA, BEN, LEA = Resting("ada", "teammate"), Resting("ben", "teammate"), Resting("lea", "lead")


def test_ready_work_goes_to_resting_teammates_without_open_work_and_never_to_the_lead() -> None:
    tasks = [task("a"), task("b"), task("c", "pending", None, "a"), task("d", "in_progress", "ada")]
    assert hand_out(tasks, [LEA, ADA, BEN]) == [Assign("a", "ben")]


def test_an_owner_that_stopped_is_reminded_twice_and_then_given_up() -> None:
    tasks = [task("a", "in_progress", "ada")]
    assert at_rest(tasks, [ADA], {}) == [Remind("a", "ada")]
    assert at_rest(tasks, [ADA], {"a": 1}) == [Remind("a", "ada")]
    assert at_rest(tasks, [ADA], {"a": 2}) == [GiveUp("a", "ada stopped working on it after 2 reminders")]


def test_work_of_an_agent_that_is_gone_or_broken_is_given_up() -> None:
    broken = Resting("ada", "teammate", failed="model_error: 401")
    assert at_rest([task("a", "in_progress", "zoe")], [ADA], {}) == [GiveUp("a", "zoe is gone")]
    assert at_rest([task("a", "in_progress", "ada")], [broken], {}) == [GiveUp("a", "ada stopped: model_error: 401")]


def test_what_waits_for_failed_work_fails_too_and_then_the_run() -> None:
    tasks = [task("a", "failed"), task("b", "pending", "ben", "a")]
    assert at_rest(tasks, [BEN], {}) == [GiveUp("b", "blocked by a, which failed")]
    over = [task("a", "failed").model_copy(update={"note": "no"}), task("b", "failed").model_copy(update={"note": "a"})]
    assert at_rest(over, [BEN], {}) == [Finish(ok=False, detail="#a a: no; #b b: a")]


def test_all_merged_is_success() -> None:
    assert at_rest([task("a", "merged"), task("b", "done")], [ADA], {}) == [
        Finish(ok=True, detail="2 tasks merged or done")
    ]


def test_a_team_without_tasks_succeeds_when_no_agent_broke() -> None:
    assert at_rest([], [ADA, BEN], {}) == [Finish(ok=True, detail="all agents have finished")]
    assert at_rest([], [Resting("ada", "teammate", "limit")], {}) == [Finish(ok=False, detail="ada: limit")]


def test_an_owner_whose_command_runs_in_the_background_is_left_in_peace_and_reminded_late() -> None:
    tasks = [task("a", "in_progress", "ada"), task("b", "pending", None, "a")]
    busy = Resting("ada", "teammate", background=("b1",))
    assert at_rest(tasks, [busy], {}, Rest(10.0)) == [Wait(PATIENCE_S - 10.0)]
    assert at_rest(tasks, [busy], {}, Rest(PATIENCE_S)) == [Remind("a", "ada")]
    assert at_rest(tasks, [busy], {"a": 2}, Rest(PATIENCE_S)) == [
        GiveUp("a", "ada stopped working on it after 2 reminders")
    ]


def test_a_background_task_excuses_nobody_else_and_no_owner_that_is_broken() -> None:
    tasks = [task("a", "in_progress", "ada"), task("b", "in_progress", "ben")]
    busy = Resting("ada", "teammate", background=("b1",))
    assert at_rest(tasks, [busy, BEN], {}) == [Remind("b", "ben")]
    broken = Resting("ada", "teammate", "limit: used", ("b1",))
    assert at_rest(tasks[:1], [broken], {}) == [GiveUp("a", "ada stopped: limit: used")]


def test_a_server_keeps_no_finished_run_open_but_its_agent_is_asked_about_it_once() -> None:
    server = Resting("ada", "teammate", background=("b1", "b2"))
    done = [task("a", "merged")]
    assert at_rest(done, [server, BEN], {}) == [Wait(ASK_S)]
    assert at_rest(done, [server, BEN], {}, Rest(ASK_S)) == [AskAbout("ada", ("b1", "b2"))]
    asked = Rest(0.0, frozenset({"b1", "b2"}))
    assert at_rest(done, [server, BEN], {}, asked) == [Finish(ok=True, detail="1 task merged or done")]
    assert at_rest([], [server], {}, Rest(ASK_S, frozenset({"b1"}))) == [AskAbout("ada", ("b2",))]
    broken = Resting("ada", "teammate", "limit", ("b1",))
    assert at_rest([], [broken], {}) == [Finish(ok=False, detail="ada: limit")]
