"""Questions and plans at a terminal: what is shown, and what the typed line means."""

from __future__ import annotations

import pytest

from retinue.orchestrator.cli.answering import HumanAtTheTerminal, chosen, question_lines
from retinue.tools.people.ports import Choice, HumanAnswers, HumanQuestion, PlanVerdict

WAY = HumanQuestion(
    question="Which way?",
    header="Way",
    options=(Choice(label="left", description="short\x1b[2J"), Choice(label="right")),
)
MANY = WAY.model_copy(update={"question": "Which ways?", "multi_select": True})


def typing(*lines: str) -> HumanAtTheTerminal:
    left = list(lines)
    return HumanAtTheTerminal(lambda words: left.pop(0))


def test_a_question_is_shown_with_numbered_options_and_nothing_that_moves_the_cursor() -> None:
    assert question_lines(WAY) == ("Way: Which way?", "  1 left: short", "  2 right")


@pytest.mark.parametrize(
    ("question", "typed", "answer"),
    [
        (WAY, " 2 ", "right"),
        (WAY, "3", "3"),
        (WAY, "0", "0"),
        (WAY, "1, 2", "1, 2"),
        (WAY, "neither", "neither"),
        (WAY, "  ", ""),
        (MANY, "1,2", "left, right"),
        (MANY, "2, 2", "right"),
        (MANY, "1, none", "1, none"),
    ],
)
def test_a_number_is_an_option_and_all_else_is_ones_own_words(question: HumanQuestion, typed: str, answer: str) -> None:
    assert chosen(question, typed) == answer


async def test_what_is_left_open_has_no_answer() -> None:
    assert await typing("1", "").ask((WAY, MANY)) == HumanAnswers(answers={"Which way?": "left"})


async def test_a_plan_is_approved_by_a_clear_yes_only() -> None:
    assert await typing("", "maybe", "Yes").approve("Do it.") == PlanVerdict(approved=True)
    assert await typing("n", " Shorter. ").approve("Do it.") == PlanVerdict(approved=False, feedback="Shorter.")
