"""How often an agent was denied is not forgotten when its process dies."""

from __future__ import annotations

from retinue.agents.assemble import denials_of
from retinue.agents.records import ToolFinished
from retinue.tools.execution.calls import CallResult


def finished(*, denied: bool = False, ran: bool = False) -> ToolFinished:
    result = CallResult(call_id="c", name="Bash", content="", denied=denied, ran=ran)
    return ToolFinished(turn=1, step=1, result=result)


def test_the_next_incarnation_counts_on() -> None:
    denials = denials_of([finished(denied=True), finished(ran=True), finished(denied=True), finished(denied=True)])
    assert (denials.consecutive, denials.total) == (2, 3)
    assert denials.denied() is not None


def test_what_neither_ran_nor_was_denied_ends_no_row() -> None:
    assert denials_of([finished(denied=True), finished()]).consecutive == 1


def test_the_total_begins_anew_after_it_was_told() -> None:
    denials = denials_of([finished(denied=True)] * 20)
    assert (denials.total, denials.consecutive) == (0, 20)
