"""Budgets fail closed, and one in flight is counted."""

from __future__ import annotations

import pytest

from retinue.agents.boot import AgentLimits
from retinue.agents.model.messages import Usage
from retinue.orchestrator.team.budget import Account, Budget


def price(model: str, used: Usage) -> float | None:
    return None if model == "unknown" else used.total / 1000


def budget(**limits: object) -> Budget:
    made = Budget(Account(AgentLimits.model_validate(limits)), price)
    made.open("a", AgentLimits())
    made.open("b", AgentLimits(requests=1))
    return made


def test_requests_of_the_run_and_of_the_agent_are_counted() -> None:
    two = budget(requests=2)
    assert two.reserve("b", 1, "m", 10, 0, 0).ok
    assert two.reserve("b", 2, "m", 10, 0, 0).text == "b has used its 1 model requests (limits.turns)"
    assert two.reserve("a", 1, "m", 10, 0, 0).ok
    assert two.reserve("a", 2, "m", 10, 0, 0).text == "the run has used its 2 model requests (limits.turns)"


def test_what_is_reserved_counts_until_it_is_settled() -> None:
    small = budget(tokens=100)
    assert small.reserve("a", 1, "m", 60, 0, 0).ok
    assert not small.reserve("b", 1, "m", 60, 0, 0).ok
    small.settle("a", 1, "m", Usage(input=10))
    assert small.reserve("b", 1, "m", 60, 0, 0).ok


@pytest.mark.parametrize(
    ("limits", "model", "text"),
    [
        ({"usd": 1.0}, "unknown", "the run has a limit in dollars, and the model has no known price"),
        ({"usd": 0.001}, "m", "the run has used 0.00 of its 0.00 USD"),
        ({"wall_s": 5.0}, "m", "the run has run for 6 s of its 5 s"),
    ],
)
def test_a_limit_that_is_reached_or_cannot_be_priced_refuses(limits: dict[str, object], model: str, text: str) -> None:
    assert budget(**limits).reserve("a", 1, model, 10, 6.0, 0).text.startswith(text)


def test_without_a_limit_in_dollars_a_model_needs_no_price() -> None:
    assert budget(usd=None, tokens=100).reserve("a", 1, "unknown", 10, 0, 0).ok


def test_a_repeated_question_or_settlement_counts_once() -> None:
    once = budget(requests=1, tokens=100)
    assert once.reserve("a", 1, "m", 60, 0, 0) == once.reserve("a", 1, "m", 60, 0, 0)
    once.settle("a", 1, "m", Usage(input=10))
    once.settle("a", 1, "m", Usage(input=10))
    assert (once.run.tokens, once.run.requests, once.run.reserved_tokens) == (10, 1, 0)


def test_questions_beside_a_conversation_are_counted_with_its_requests() -> None:
    one = budget(tokens=100)
    assert one.reserve("a", 1, "m", 40, 0, 0).ok
    assert one.reserve_side("a", "1.1", "m", 40, 0, 0).ok
    assert not one.reserve_side("a", "1.2", "m", 40, 0, 0).ok
    one.settle_side("a", "1.1", "m", Usage(input=5, output=5))
    assert one.reserve_side("a", "1.2", "m", 40, 0, 0).ok
    assert (one.run.requests, one.run.tokens, one.agents["a"].tokens) == (3, 10, 10)


def test_a_question_is_granted_and_settled_once() -> None:
    once = budget(tokens=100)
    assert once.reserve_side("a", "1.1", "m", 60, 0, 0).ok
    assert once.reserve_side("a", "1.1", "m", 60, 0, 0).ok
    for _ in range(2):
        once.settle_side("a", "1.1", "m", Usage(output=7))
    assert (once.run.requests, once.run.tokens, once.run.reserved_tokens) == (1, 7, 0)


def test_a_question_that_its_agent_lost_holds_nothing_back() -> None:
    lost = budget(tokens=100)
    assert lost.reserve_side("a", "1.1", "m", 90, 0, 0).ok
    assert lost.reserve("a", 2, "m", 90, 0, 0).ok
    assert lost.run.reserved_tokens == 90


def test_a_question_without_a_known_price_is_refused_where_dollars_are_limited() -> None:
    assert "no known price" in budget(usd=1).reserve_side("a", "1.1", "unknown", 1, 0, 0).text
