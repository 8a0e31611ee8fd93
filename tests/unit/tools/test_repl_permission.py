"""Who may run code: the sandbox holds it, and no rule for a tool can be got round by it unasked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from retinue.tools.base import AskFirst, Behavior, NameSubject, Refused
from retinue.tools.execution.inner import InnerCalls
from retinue.tools.extension.repl.constants import EMPTY, MAX_CODE, NO_CHARACTER, TOO_LONG
from retinue.tools.extension.repl.schema import REPLInput, REPLOutput
from retinue.tools.extension.repl.tool import REPL
from retinue.tools.extension.repl.words import content_of
from retinue.tools.lasting import Lasting
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.code import code_rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import assemble
from retinue.tools.registry.table import WRAPPED_BY_REPL
from retinue.tools.shell.sandbox.policy import SandboxUse
from support.calls import Surroundings, context, pipeline

RuleLists = dict[Literal["allow", "ask", "deny"], list[str]]
WRAPPED = tuple(tool for tool in builtin_tools() if tool.name in WRAPPED_BY_REPL - {"Agent"})
OFF = SandboxUse()
BROKEN = SandboxUse(state="broken", why="no bwrap")
ON = SandboxUse(state="on")
AUTO = SandboxUse(state="on", auto_allow=True)


def given(code: str, *, reset: bool = False) -> REPLInput:
    return REPLInput.model_validate({"code": code, "reset": reset})


def rights(
    mode: Mode = "default", allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()
) -> Rights:
    texts = RuleTexts("spec", tuple(allow), tuple(ask), tuple(deny))
    return Rights(RuleBook.of([texts], Anchors(Path("/w"), Path("/home/me"))), mode)


def ruled(rules: RuleLists, mode: Mode = "default", allow: Sequence[str] = ()) -> Rights:
    return rights(mode, (*allow, *rules.get("allow", ())), rules.get("ask", ()), rules.get("deny", ()))


async def decided(use: SandboxUse, *sets: Rights, has_shell: bool = True) -> Behavior:
    """What the rights come to before anybody is asked."""
    policy = PermissionPolicy(sets)
    tool = REPL()

    async def ended(result: object) -> None:
        raise AssertionError

    code = InnerCalls(
        assemble(WRAPPED),
        pipeline(*WRAPPED, around=Surroundings()),
        ended,
        lambda: code_rights(policy, tool, WRAPPED, has_shell=has_shell),
    )
    ctx = replace(context(), sandbox=use, code=code, lasting=Lasting())
    args = given(code="1")
    found = await tool.validate_input(args, ctx)
    assert not isinstance(found, Refused)
    why = found.message if isinstance(found, AskFirst) else None
    return (await policy.judged(tool, args, ctx, NameSubject(), why)).behavior


@pytest.mark.parametrize(
    ("use", "own", "expected"),
    [
        (OFF, rights(), "ask"),
        (OFF, rights("acceptEdits"), "ask"),
        (OFF, rights("plan"), "ask"),
        (OFF, rights("dontAsk"), "deny"),
        (OFF, rights("bypassPermissions"), "allow"),
        (OFF, rights(allow=["REPL"]), "allow"),
        (OFF, rights(deny=["REPL"]), "deny"),
        (OFF, rights("bypassPermissions", deny=["REPL"]), "deny"),
        (OFF, rights("bypassPermissions", ask=["REPL"]), "ask"),
        (ON, rights(), "ask"),
        (ON, rights("bypassPermissions"), "allow"),
        (ON, rights(allow=["REPL"]), "allow"),
        (AUTO, rights(), "allow"),
        (AUTO, rights("dontAsk"), "allow"),
        (AUTO, rights("plan"), "ask"),
        (AUTO, rights(ask=["REPL"]), "ask"),
        (AUTO, rights(deny=["REPL"]), "deny"),
        (BROKEN, rights(), "ask"),
        (BROKEN, rights("bypassPermissions"), "ask"),
        (BROKEN, rights(allow=["REPL"]), "ask"),
        (BROKEN, rights("dontAsk", allow=["REPL"]), "deny"),
    ],
)
async def test_running_code_is_decided_as_running_a_command_is(
    use: SandboxUse, own: Rights, expected: Behavior
) -> None:
    assert await decided(use, own) == expected


RESTRAINTS: list[RuleLists] = [
    {"deny": ["Bash"]},
    {"deny": ["Bash(git push:*)"]},
    {"ask": ["Bash(rm:*)"]},
    {"deny": ["Read(secret/**)"]},
    {"deny": ["Edit(/docs/**)"]},
    {"ask": ["Write"]},
    {"deny": ["Gr*"]},
]


@pytest.mark.parametrize("rules", RESTRAINTS)
@pytest.mark.parametrize("use", [OFF, ON, AUTO, BROKEN])
@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions", "plan"])
async def test_code_is_no_way_round_a_rule_for_what_it_could_do_by_itself(
    use: SandboxUse, mode: Mode, rules: RuleLists
) -> None:
    assert await decided(use, ruled(rules, mode)) == "ask"
    assert await decided(use, ruled(rules, "dontAsk")) == "deny"


@pytest.mark.parametrize("rules", RESTRAINTS)
@pytest.mark.parametrize("use", [OFF, ON, AUTO])
async def test_a_rule_that_allows_code_stands_against_rules_for_other_tools(use: SandboxUse, rules: RuleLists) -> None:
    assert await decided(use, ruled(rules, allow=["REPL"])) == "allow"


@pytest.mark.parametrize("rules", [{"deny": ["Agent(explore)"]}, {"deny": ["mcp__web"]}, {"allow": ["Bash(make)"]}])
async def test_rules_for_what_code_cannot_do_do_not_restrain_it(rules: RuleLists) -> None:
    assert await decided(AUTO, ruled(rules)) == "allow"


@pytest.mark.parametrize("use", [OFF, ON, AUTO])
async def test_who_has_no_shell_gets_none_by_way_of_code(use: SandboxUse) -> None:
    assert await decided(use, rights("bypassPermissions"), has_shell=False) == "ask"
    assert await decided(use, rights(allow=["REPL"]), has_shell=False) == "allow"


async def test_a_child_needs_its_parents_word_too() -> None:
    own = rights(allow=["REPL"])
    assert await decided(OFF, own, rights()) == "ask"
    assert await decided(AUTO, own, rights(deny=["Bash"])) == "ask"
    assert await decided(AUTO, own, rights("plan")) == "ask"
    assert await decided(AUTO, own, own) == "allow"


@pytest.mark.parametrize(
    ("code", "number"), [("", EMPTY), (" \n", EMPTY), ("a\0", NO_CHARACTER), ("\ud800", NO_CHARACTER)]
)
async def test_code_that_is_none_is_refused(code: str, number: int) -> None:
    found = await REPL().validate_input(given(code=code), context())
    assert isinstance(found, Refused)
    assert found.code == number


async def test_code_has_a_limit_and_may_be_empty_with_a_reset() -> None:
    found = await REPL().validate_input(given(code="x" * (MAX_CODE + 1)), context())
    assert isinstance(found, Refused)
    assert found.code == TOO_LONG
    assert await REPL().validate_input(given(code="x" * MAX_CODE), context()) is None
    assert await REPL().validate_input(given(code="", reset=True), context()) is None


def test_it_promises_nothing_of_what_code_does() -> None:
    traits = REPL().traits(given(code="1"))
    assert not traits.read_only
    assert not traits.concurrency_safe
    assert not REPL.needs_lease
    assert not REPL.idempotent
    assert REPL().classifier_input(given(code="1")) == ""
    assert REPL().subject(given(code="1"), context()) == NameSubject()
    assert not REPL().is_available(context())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (REPLOutput(output=""), "(no output)"),
        (REPLOutput(output="a\n", value="1"), "a\n=> 1"),
        (REPLOutput(output="", error="Traceback\n"), "Traceback"),
        (REPLOutput(output="a", stopped="it took too long"), "a\n[The code was stopped: it took too long.]"),
        (REPLOutput(output="", gone="it died"), "[It died. All variables are gone; the next call starts anew.]"),
        (REPLOutput(output="", value="1", lost="it died"), "[It died. Variables of earlier calls are gone.]\n=> 1"),
    ],
)
def test_the_model_is_told_what_came_of_it(data: REPLOutput, text: str) -> None:
    assert content_of(data) == text
