"""What agents may do to the task board."""

from __future__ import annotations

from itertools import count

import pytest

from retinue.orchestrator.team.board import Board, Submission
from retinue.tools.ports import TaskChange, TaskDraft, TaskView

WORK = Submission("retinue/r/ada.1/work", "a" * 40)


@pytest.fixture
def board() -> Board:
    board = Board(members={"ada", "ben", "lea"}, leads={"lea"})
    board.put(TaskView(id="one", subject="First", owner="ada"))
    board.put(TaskView(id="two", subject="Second", blocked_by=("one",)))
    board.tasks["one"] = board.tasks["one"].model_copy(update={"blocks": ("two",)})
    return board


KEYS = count()


def change(board: Board, by: str, **fields: object):
    return board.update(f"key-{next(KEYS)}", by, TaskChange.model_validate(fields))


def test_a_claim_sets_the_owner_and_work_is_submitted_once(board: Board) -> None:
    assert change(board, "ada", task_id="one", status="in_progress").answer.text == "Task #one is in_progress (ada)."
    handed = board.update("k", "ada", TaskChange(task_id="one", status="completed"), WORK)
    assert handed.answer.task is not None
    assert (handed.answer.task.status, handed.answer.task.sha) == ("verifying", "a" * 40)
    again = board.update("k", "ada", TaskChange(task_id="one", status="completed"), WORK)
    assert (again.answer, again.changed) == (handed.answer, ())


def test_without_a_branch_completed_means_done(board: Board) -> None:
    change(board, "ada", task_id="one", status="in_progress")
    assert change(board, "ada", task_id="one", status="completed").answer.text == "Task #one is done."
    assert [t.id for t in board.ready()] == ["two"]


@pytest.mark.parametrize(
    ("by", "fields", "text"),
    [
        ("ben", {"task_id": "nine"}, "There is no task #nine. Tasks: one, two."),
        (
            "ben",
            {"task_id": "one", "status": "in_progress"},
            "Task #one belongs to ada. Write to ada if you want it changed.",
        ),
        (
            "ben",
            {"task_id": "two", "status": "in_progress"},
            "Task #two is blocked by #one; it can be started when they are merged.",
        ),
        (
            "ada",
            {"task_id": "one", "status": "completed"},
            "Task #one is pending. Set it in_progress first, do the work, then complete it.",
        ),
        ("ada", {"task_id": "one", "owner": "zoe"}, "There is no agent 'zoe'. Agents: ada, ben, lea."),
        ("ben", {"task_id": "one", "owner": "ben"}, "Task #one belongs to ada; only ada or the lead gives it away."),
        ("ada", {"task_id": "one", "add_blocked_by": ["two"]}, "That would make a cycle: #one -> #two -> #one."),
        ("ada", {"task_id": "one", "add_blocks": ["one"]}, "That would make a cycle: #one -> #one."),
        ("ada", {"task_id": "one", "add_blocks": ["x"]}, "There is no task #x."),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(
    board: Board, by: str, fields: dict[str, object], text: str
) -> None:
    before = dict(board.tasks)
    outcome = change(board, by, **fields)
    assert (outcome.answer.ok, outcome.answer.text, outcome.changed) == (False, text, ())
    assert board.tasks == before


def test_work_with_the_merge_queue_cannot_be_changed_by_its_owner(board: Board) -> None:
    change(board, "ada", task_id="one", status="in_progress")
    board.update("k", "ada", TaskChange(task_id="one", status="completed"), WORK)
    assert "with the merge queue" in change(board, "ada", task_id="one", status="pending").answer.text


def test_a_return_is_counted_and_merged_frees_what_waits(board: Board) -> None:
    change(board, "ada", task_id="one", status="in_progress")
    board.update("k", "ada", TaskChange(task_id="one", status="completed"), WORK)
    back = board.returned("one", "conflict in a.py")
    assert (back.status, back.returns, back.note, back.owner) == ("in_progress", 1, "conflict in a.py", "ada")
    board.merged("one", "b" * 40)
    assert [t.id for t in board.ready()] == ["two"]
    assert "no longer changes" in change(board, "ada", task_id="one", status="in_progress").answer.text


def test_links_are_kept_at_both_ends(board: Board) -> None:
    made = board.create("c", "lea", TaskDraft(subject="Third")).answer.task
    assert made is not None
    outcome = change(board, "lea", task_id=made.id, add_blocked_by=["two"])
    assert {t.id: (t.blocks, t.blocked_by) for t in outcome.changed} == {
        made.id: ((), ("two",)),
        "two": ((made.id,), ("one",)),
    }


def test_ids_are_never_reused_and_a_repeated_create_is_one_task(board: Board) -> None:
    first = board.create("c1", "lea", TaskDraft(subject="A")).answer.task
    assert first is not None
    assert board.create("c1", "lea", TaskDraft(subject="A")).answer.task == first
    change(board, "lea", task_id=first.id, status="deleted")
    second = board.create("c2", "lea", TaskDraft(subject="B")).answer.task
    assert second is not None
    assert int(second.id) > int(first.id)
    assert board.get(first.id) is None


def test_the_death_of_an_owner_frees_its_open_work_only(board: Board) -> None:
    change(board, "ada", task_id="one", status="in_progress")
    assert [(t.id, t.status, t.owner) for t in board.release("ada")] == [("one", "pending", None)]
    change(board, "ben", task_id="one", status="in_progress")
    board.update("k", "ben", TaskChange(task_id="one", status="completed"), WORK)
    assert board.release("ben") == ()


def test_a_deleted_blocker_blocks_nothing(board: Board) -> None:
    change(board, "lea", task_id="one", status="deleted")
    assert [t.id for t in board.ready()] == ["two"]
