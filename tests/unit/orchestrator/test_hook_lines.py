"""How people are told of hooks: only of what they would want to know."""

from __future__ import annotations

import pytest

from retinue.agents.mail.envelopes import Envelope, Text
from retinue.agents.model.prices import cost_usd
from retinue.agents.records import HooksRan, MailStored, PromptRefused
from retinue.orchestrator.view.lines import line_of
from retinue.orchestrator.view.run_state import AgentView, RunView
from retinue.tools.hooks.runs import HookRun

FINE = HookRun(name="Stop hook check (user)", outcome="ok", exit=0)
BLOCKS = HookRun(name="Stop hook check (user)", outcome="blocked", exit=2)
FAILS = HookRun(name="Stop hook check (user)", outcome="failed", exit=1, problem="it ended with 1: oh")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (HooksRan(event="Stop", runs=(FINE,)), None),
        (HooksRan(event="Stop", runs=(FINE, BLOCKS)), "Stop hook check (user) blocks"),
        (HooksRan(event="Stop", runs=(FAILS,)), "Stop hook check (user): it ended with 1: oh"),
        (HooksRan(event="Stop", runs=(FINE,), messages=("all\x1b[31m well",)), "all well"),
        (HooksRan(event="Stop", runs=(FINE,), halts="enough"), "ends the turn: enough"),
        (PromptRefused(mail="m", reason="it holds a key"), "a hook kept a prompt back: it holds a key"),
    ],
)
def test_a_line_for_what_hooks_did(record: HooksRan | PromptRefused, text: str | None) -> None:
    line = line_of("ada~1", 0.0, record)
    assert (line.text if line is not None else None) == text


def test_a_prompt_that_was_kept_back_is_not_unread() -> None:
    view = RunView(cost_usd)
    view.agents["ada~1"] = AgentView(agent="ada~1", name="ada", role="lead", definition="coder", model="m")
    envelope = Envelope(id="m", sender="human", recipient="ada~1", body=Text(text="x"))
    view.apply("ada~1", 0.0, MailStored(envelope=envelope))
    assert view.agents["ada~1"].unread == {"m"}
    view.apply("ada~1", 0.0, PromptRefused(mail="m", reason="no"))
    assert view.agents["ada~1"].unread == set()
