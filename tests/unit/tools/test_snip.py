"""Snip: a stretch of the agent's own conversation, replaced by a note."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from retinue.tools.execution.calls import CallResult
from retinue.tools.ports import Stretch
from retinue.tools.system.snip.tool import Snip
from support.calls import call, context, pipeline, run


@dataclass
class History:
    asked: list[tuple[str, Stretch, str]] = field(default_factory=list)

    async def snip(self, key: str, stretch: Stretch, note: str) -> int:
        self.asked.append((key, stretch, note))
        return 1_200


async def snip(history: History | None, **values: object) -> CallResult:
    return await run(pipeline(Snip()), call("Snip", **values), context(history=history))


async def test_a_stretch_is_replaced_by_the_note_under_the_key_of_the_call() -> None:
    history = History()
    end = await snip(history, oldest="7", newest=3, note=" The parser is in a.py. ")
    assert history.asked == [("ada~1/c1", Stretch(7, 3), "The parser is in a.py.")]
    assert (end.content, end.title) == (
        "5 exchanges replaced by the note; about 1200 tokens are freed.",
        "Snip 5 exchanges",
    )


@pytest.mark.parametrize(
    ("values", "error_class"),
    [
        ({"oldest": 2, "newest": 3, "note": "x"}, "Refused:Snip:1"),
        ({"oldest": 3, "newest": 2, "note": "  "}, "Refused:Snip:2"),
        ({"oldest": 3, "newest": 0, "note": "x"}, "InputValidationError"),
        ({"oldest": 3, "newest": 1, "note": "x" * 2_001}, "InputValidationError"),
    ],
)
async def test_what_is_no_stretch_or_no_note_is_refused(values: dict[str, object], error_class: str) -> None:
    history = History()
    end = await snip(history, **values)
    assert (end.error_class, end.ran, history.asked) == (error_class, False, [])


async def test_an_agent_whose_conversation_cannot_be_shortened_is_told_so() -> None:
    end = await snip(None, oldest=2, newest=1, note="x")
    assert (end.is_error, end.content) == (True, "This agent's conversation cannot be shortened.")
