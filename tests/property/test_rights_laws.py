"""Laws of several sets of rights: over all sources, modes and depths, and whoever vouches for a call."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from retinue.tools.base import AnyTool, Decision, ToolContext, ToolInput
from retinue.tools.permissions.chain import Answer, PermissionPolicy, Rights, intersect
from retinue.tools.permissions.decide import MODES
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from support.calls import context

TOOLS: dict[str, AnyTool] = {each.name: each for each in builtin_tools()}
ROOT = Path("/nonexistent/tree")
ANCHORS = Anchors(ROOT, Path("/nonexistent/home"))
SOURCES = st.sampled_from(["user", "project", "local", "flag", "policy", "spec", "cli", "command", "session", "agent"])
MODE = st.sampled_from(MODES)
CALLS = st.sampled_from(
    [
        (
            "Write",
            {"file_path": "a.py", "content": "x"},
            ("Write", "Edit", "Edit(/a.py)", "Edit(*.py)", "Read(//**/a.py)"),
        ),
        ("Read", {"file_path": "a.py"}, ("Read", "Read(a.py)", "Read(/**)")),
        ("Bash", {"command": "make test"}, ("Bash", "Bash(make:*)", "Bash(*test)", "Bash(make test)")),
        (
            "Agent",
            {"description": "d", "prompt": "p", "subagent_type": "explore", "model": "opus"},
            ("Agent", "Agent(explore)", "Agent(model:opus)", "Task(model:*)"),
        ),
        ("WebFetch", {"url": "https://example.com", "prompt": "p"}, ("WebFetch", "WebFetch(domain:example.com)")),
    ]
)
OPEN = ("Bash", "Edit", "Read", "Write", "Agent", "WebFetch", "Edit(/**)", "Read(/**)", "Bash(make:*)")


class Yes:
    """Allows whatever it is asked about."""

    async def answer(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Answer:
        return Answer(allow=True, rules=asked.question.suggestions if asked.question is not None else ())

    async def request(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Decision | None:
        return Decision("allow", "yes", "hook")


@st.composite
def open_rights(draw: st.DrawFn) -> Rights:
    book = RuleBook.of([RuleTexts(draw(SOURCES), allow=OPEN)], ANCHORS)
    return Rights(book, draw(MODE))


async def decided(policy: PermissionPolicy, name: str, given: dict[str, str]) -> Decision:
    tool = TOOLS[name]

    async def guess() -> Decision | None:
        return Decision("allow", "looks good", "classifier")

    work = asyncio.ensure_future(guess())
    vouched = Decision("allow", "fine", "hook")
    ctx = context(ROOT, cwd=ROOT)
    args = tool.Input.model_validate(given)
    decision = await policy.decide(tool, args, ctx, forced_ask=None, vouched=vouched, classifier=work)
    await work
    return decision


@settings(max_examples=150, deadline=None)
@given(CALLS, st.lists(open_rights(), min_size=1, max_size=4), st.data())
def test_one_deny_rule_of_any_source_at_any_depth_beats_everything(
    call: tuple[str, dict[str, str], tuple[str, ...]], rights: list[Rights], data: st.DataObject
) -> None:
    name, given_input, rules = call
    depth = data.draw(st.integers(0, len(rights) - 1))
    texts = [
        RuleTexts(data.draw(SOURCES), allow=OPEN),
        RuleTexts(data.draw(SOURCES), deny=(data.draw(st.sampled_from(rules)),)),
    ]
    rights[depth] = Rights(RuleBook.of(data.draw(st.permutations(texts)), ANCHORS), rights[depth].mode)
    yes = Yes()
    policy = PermissionPolicy(tuple(rights), person=yes, requests=yes)
    if data.draw(st.booleans()):
        policy.learn("allow", data.draw(st.sampled_from(OPEN)))
    assert asyncio.run(decided(policy, name, given_input)).behavior == "deny"


@settings(max_examples=150, deadline=None)
@given(CALLS, open_rights(), open_rights(), st.booleans(), st.booleans())
def test_a_child_is_allowed_nothing_that_its_parent_is_not(
    call: tuple[str, dict[str, str], tuple[str, ...]], own: Rights, parent: Rights, narrow: bool, plans: bool
) -> None:
    name, given_input, _ = call
    strict = RuleBook.of([RuleTexts("spec", allow=("Read",))], ANCHORS)
    above = PermissionPolicy((Rights(strict, parent.mode) if narrow else parent,))
    if plans:
        above.session.enter_plan(ROOT / "plan.md")
    child = intersect(above, PermissionPolicy((own,)))

    async def both() -> tuple[str, str]:
        tool, ctx = TOOLS[name], context(ROOT, cwd=ROOT)
        args = tool.Input.model_validate(given_input)
        first = await above.decide(tool, args, ctx, forced_ask=None)
        return first.behavior, (await child.decide(tool, args, ctx, forced_ask=None)).behavior

    parents, childs = asyncio.run(both())
    assert childs == "deny" or parents == "allow"
