"""The permission chain, for one call whose facts are known."""

from __future__ import annotations

import pytest

from retinue.tools.base import Decision
from retinue.tools.permissions.decide import Case, Mode, decide
from retinue.tools.permissions.denials import Denials
from retinue.tools.permissions.rules import Rule

DENY, ASK = Rule("deny", "Bash", "rm:*"), Rule("ask", "Bash", "git push:*", "cli")
ALLOW_ALL, ALLOW_THIS = Rule("allow", "Edit"), Rule("allow", "Edit", "/a")
MODES: tuple[Mode, ...] = ("default", "acceptEdits", "dontAsk", "bypassPermissions")


@pytest.mark.parametrize("mode", MODES)
def test_deny_beats_everything(mode: Mode) -> None:
    decision = decide(Case(mode, deny=DENY, ask=ASK, allow=ALLOW_THIS, tool_says=Decision("allow"), read_only=True))
    assert decision == Decision("deny", "the spec rule Bash(rm:*) denies it", "spec rule Bash(rm:*)")


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_refuses_is_obeyed(mode: Mode) -> None:
    no = Decision("deny", "inside .git", "path")
    assert decide(Case(mode, allow=ALLOW_THIS, tool_says=no)) == no


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "case",
    [
        Case(ask=ASK, allow=ALLOW_THIS, read_only=True),
        Case(forced_ask="is this meant?", allow=ALLOW_THIS),
        Case(protected=".git", touches="write", allow=ALLOW_THIS),
    ],
    ids=["ask rule", "validation", "protected path"],
)
def test_some_things_are_asked_whatever_the_rules_and_modes(mode: Mode, case: Case) -> None:
    from dataclasses import replace

    assert decide(replace(case, mode=mode)).behavior == ("deny" if mode == "dontAsk" else "ask")


def test_reading_a_protected_path_is_reading() -> None:
    assert decide(Case(protected=".vscode", touches="read", read_only=True)).behavior == "allow"


@pytest.mark.parametrize(
    ("case", "default", "accept", "bypass"),
    [
        (Case(touches="write"), "ask", "allow", "allow"),
        (Case(touches="write", outside=True), "ask", "ask", "allow"),
        (Case(touches="write", outside=True, allow=ALLOW_ALL), "ask", "ask", "allow"),
        (Case(touches="write", outside=True, allow=ALLOW_THIS), "allow", "allow", "allow"),
        (Case(touches="write", allow=ALLOW_ALL), "allow", "allow", "allow"),
        (Case(touches="read", read_only=True), "allow", "allow", "allow"),
        (Case(touches="read", read_only=True, outside=True), "ask", "ask", "allow"),
        (Case(touches="read", read_only=False), "ask", "ask", "allow"),
        (Case(touches="write", read_only=True), "ask", "allow", "allow"),
        (Case(touches="other", allow=Rule("allow", "T")), "allow", "allow", "allow"),
        (Case(touches="other"), "ask", "ask", "allow"),
        (Case(touches="other", tool_says=Decision("allow")), "allow", "allow", "allow"),
        (Case(touches="other", tool_says=Decision("ask")), "ask", "ask", "allow"),
        (Case(touches="other", tool_says=Decision("ask"), allow=Rule("allow", "T")), "ask", "ask", "allow"),
        (Case(touches="write", tool_says=Decision("allow"), outside=True), "ask", "ask", "allow"),
    ],
)
def test_the_mode_decides_what_no_rule_speaks_of(case: Case, default: str, accept: str, bypass: str) -> None:
    from dataclasses import replace

    answers = [decide(replace(case, mode=mode)).behavior for mode in ("default", "acceptEdits", "bypassPermissions")]
    assert answers == [default, accept, bypass]


@pytest.mark.parametrize("case", [Case(touches="write"), Case(touches="other"), Case(tool_says=Decision("ask", "hm"))])
def test_the_mode_that_asks_nobody_denies_what_would_be_asked(case: Case) -> None:
    from dataclasses import replace

    decision = decide(replace(case, mode="dontAsk"))
    assert decision.behavior == "deny"
    assert decision.reason.endswith("the mode dontAsk asks nobody")


def test_three_denials_in_a_row_are_answered_with_advice() -> None:
    denials = Denials()
    assert [denials.denied() is not None for _ in range(4)] == [False, False, True, True]
    denials.allowed()
    assert denials.denied() is None


def test_twenty_denials_in_all_are_answered_with_advice_once() -> None:
    denials = Denials()
    advised: list[bool] = []
    for _ in range(21):
        denials.allowed()
        advised.append(denials.denied() is not None)
    assert advised == [*[False] * 19, True, False]
    assert denials.total == 1
