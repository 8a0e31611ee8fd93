"""The policy of one agent, over real folders and links: what it allows, and how it words what it denies."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.base import READS, AnyTool, Decision, PathSubject, Question, Subject, ToolContext, Traits
from retinue.tools.permissions.chain import PermissionPolicy, Rights, intersect
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.protected import protected_part
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from support.calls import Silent, Words, context, tool

TOOLS: dict[str, AnyTool] = {each.name: each for each in builtin_tools()}


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text("x\n")
    return context(root, results_dir=tmp_path / "results")


def policy(ctx: ToolContext, mode: Mode = "default", **rules: tuple[str, ...]) -> PermissionPolicy:
    book = RuleBook.of([RuleTexts(**rules)], Anchors(ctx.root, Path("/home/me")))
    return PermissionPolicy((Rights(book, mode),))


async def ask(
    rights: PermissionPolicy, ctx: ToolContext, name: str, forced_ask: str | None = None, **values: object
) -> Decision:
    called = TOOLS[name]
    return await rights.decide(called, called.Input.model_validate(values), ctx, forced_ask=forced_ask)


async def test_reading_in_the_workspace_needs_no_rule(ctx: ToolContext) -> None:
    assert (await ask(policy(ctx), ctx, "Read", file_path="a.py")).behavior == "allow"


async def test_a_denial_names_the_reason_and_the_rule_that_would_help(ctx: ToolContext) -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    assert await ask(policy(ctx), ctx, "Edit", **edit) == Decision(
        "deny",
        "Permission denied for Edit: no rule allows it, and the mode default does not. Nobody is there to be asked. "
        "The person who started you could allow it with the rule `Edit(/a.py)` under permissions.allow.",
        "mode default",
        Question(source="mode default", suggestions=("Edit(/a.py)",)),
    )
    assert (await ask(policy(ctx, allow=("Edit(/a.py)",)), ctx, "Edit", **edit)).behavior == "allow"


async def test_a_denied_command_is_told_why_and_which_rules_there_are(ctx: ToolContext) -> None:
    rights = policy(ctx, "acceptEdits", allow=("Bash(make test)", "Bash(make lint:*)", "Read"))
    text = (await ask(rights, ctx, "Bash", command="make all")).reason
    assert "no rule allows it, and the mode acceptEdits does not (make: only its version is listed)" in text
    assert "the rule `Bash(make all:*)`" in text
    assert text.endswith("Rules that allow commands: `Bash(make test)`, `Bash(make lint:*)`.")


@pytest.mark.parametrize("command", ["npm run build", "rm *.py", "npm test && make a", "FOO=1 make x"])
async def test_suggested_rules_allow_the_very_command(ctx: ToolContext, command: str) -> None:
    question = (await ask(policy(ctx), ctx, "Bash", command=command)).question
    assert question is not None
    assert question.suggestions
    allowed = policy(ctx, allow=question.suggestions)
    assert (await ask(allowed, ctx, "Bash", command=command)).behavior == "allow"


async def test_a_denial_by_rule_suggests_no_way_around_it(ctx: ToolContext) -> None:
    rights = policy(ctx, "bypassPermissions", deny=("Bash(rm:*)",))
    assert (await ask(rights, ctx, "Bash", command="cd x && rm -rf y")).reason == (
        "Permission denied for Bash: the spec rule Bash(rm:*) denies it."
    )


@pytest.mark.parametrize("command", ["tmux kill-server", "retinue down r"])
async def test_no_rule_is_suggested_for_commands_that_no_rule_covers(ctx: ToolContext, command: str) -> None:
    text = (await ask(policy(ctx, allow=("Bash",)), ctx, "Bash", command=command)).reason
    assert "could allow it" not in text


async def test_what_lies_outside_is_asked_for_and_allowed_by_its_own_rule_alone(ctx: ToolContext) -> None:
    outside = str(ctx.root.parent / "secret")
    for rules, expected in (((), "deny"), (("Read",), "deny"), ((f"Read(/{outside})",), "allow")):
        assert (await ask(policy(ctx, allow=rules), ctx, "Read", file_path=outside)).behavior == expected


async def test_results_of_the_run_may_be_read(ctx: ToolContext) -> None:
    path = str(ctx.results_dir / "c1.txt")
    assert (await ask(policy(ctx), ctx, "Read", file_path=path)).behavior == "allow"
    assert (await ask(policy(ctx, "acceptEdits"), ctx, "Write", file_path=path, content="")).behavior == "deny"


async def test_a_link_out_of_the_workspace_is_followed_before_anything_is_allowed(ctx: ToolContext) -> None:
    secret = ctx.root.parent / "secret"
    secret.write_text("s")
    (ctx.root / "link").symlink_to(secret)
    assert (await ask(policy(ctx), ctx, "Read", file_path="link")).behavior == "deny"
    assert (await ask(policy(ctx, allow=("Read(/link)",)), ctx, "Read", file_path="link")).behavior == "deny"
    both = policy(ctx, allow=(f"Read(/{ctx.root.parent}/**)",))
    assert (await ask(both, ctx, "Read", file_path="link")).behavior == "allow"


async def test_the_boundary_holds_for_a_tool_that_does_not_look_at_it_itself(ctx: ToolContext) -> None:
    class Reads(Silent):
        name = "Reads"

        def traits(self, args: Words) -> Traits:
            return READS

        def subject(self, args: Words, ctx: ToolContext) -> Subject:
            return PathSubject(ctx.cwd / args.text, write=False)

    (ctx.root / "link").symlink_to(ctx.root.parent / "secret")
    rights = policy(ctx)
    for path, expected in (("a.py", "allow"), ("../secret", "deny"), ("link", "deny")):
        assert (await rights.decide(Reads(), Words(text=path), ctx, forced_ask=None)).behavior == expected


async def test_a_link_in_front_of_a_denied_file_does_not_hide_it(ctx: ToolContext) -> None:
    (ctx.root / "b.py").symlink_to(ctx.root / "a.py")
    decision = await ask(policy(ctx, "bypassPermissions", deny=("Read(/a.py)",)), ctx, "Read", file_path="b.py")
    assert decision.source == "spec rule Read(/a.py)"


async def test_a_workspace_that_is_reached_through_a_link_is_the_workspace(ctx: ToolContext) -> None:
    alias = ctx.root.parent / "alias"
    alias.symlink_to(ctx.root)
    through = context(alias)
    rights = policy(through, allow=("Edit(/a.py)",))
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    assert (await ask(rights, through, "Edit", **edit)).behavior == "allow"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk", "bypassPermissions"])
@pytest.mark.parametrize(
    "path", [".mcp.json", ".claude/settings.json", "sub/.BashRC", ".retinue/x", ".config/git/config"]
)
async def test_protected_paths_are_approved_by_no_rule_and_no_mode(ctx: ToolContext, mode: Mode, path: str) -> None:
    rights = policy(ctx, mode, allow=("Edit", "Write", f"Edit(/{path})"))
    decision = await ask(rights, ctx, "Write", file_path=path, content="")
    assert decision.behavior == "deny"
    assert "is protected" in decision.reason


async def test_a_link_to_a_protected_path_is_protected(ctx: ToolContext) -> None:
    (ctx.root / "harmless.json").symlink_to(ctx.root / ".mcp.json")
    decision = await ask(policy(ctx, "acceptEdits"), ctx, "Write", file_path="harmless.json", content="")
    assert "is protected" in decision.reason


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("src/a.py", None),
        (".claude/worktrees/x/a.py", None),
        (".claude/agents/a.md", ".claude"),
        ("a/.config/git/ignore", ".config/git"),
        (".config/other", None),
        (".GitConfig", ".GitConfig"),
        ("git/x", None),
    ],
)
def test_protection_is_told_by_parts_of_the_path(path: str, part: str | None) -> None:
    assert protected_part(Path(path)) == part


async def test_a_search_over_a_folder_with_a_denied_file_is_denied(ctx: ToolContext) -> None:
    (ctx.root / "sub").mkdir()
    (ctx.root / "free").mkdir()
    (ctx.root / "sub" / ".env").write_text("KEY=1")
    rights = policy(ctx, deny=("Read(.env)",))
    denied = await ask(rights, ctx, "Grep", pattern="KEY")
    assert denied.behavior == "deny"
    assert "sub/.env, which the spec rule Read(.env) keeps from you; name a place without it" in denied.reason
    assert (
        await ask(policy(ctx, "bypassPermissions", ask=("Read(.env)",)), ctx, "Glob", pattern="*")
    ).behavior == "deny"
    assert (await ask(rights, ctx, "Grep", pattern="KEY", path="free")).behavior == "allow"
    assert (await ask(rights, ctx, "Grep", pattern="KEY", path="a.py")).behavior == "allow"


async def test_a_search_over_too_many_files_to_check_is_denied(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.tools.permissions.facts.MAX_ENTRIES", 1)
    decision = await ask(policy(ctx, deny=("Read(.env)",)), ctx, "Glob", pattern="*")
    assert "too many files" in decision.reason


async def test_a_child_may_do_what_both_it_and_its_parent_may(ctx: ToolContext) -> None:
    parent = policy(ctx, "default", allow=("Bash(make test)",), deny=("Agent(coder)",))
    child = policy(ctx, "bypassPermissions", deny=("Bash(make test)",))
    both = intersect(parent, child)
    for command in ("make test", "make lint"):
        assert (await ask(both, ctx, "Bash", command=command)).behavior == "deny"
    start = {"description": "x", "prompt": "y"}
    assert (await ask(both, ctx, "Agent", subagent_type="coder", **start)).behavior == "deny"
    assert (await ask(both, ctx, "Agent", subagent_type="explore", **start)).behavior == "allow"
    assert (await ask(both, ctx, "Read", file_path="a.py")).behavior == "allow"


async def test_a_denial_says_whose_rights_were_too_small(ctx: ToolContext) -> None:
    book = RuleBook((), Anchors(ctx.root, ctx.root))
    both = PermissionPolicy((Rights(book, "bypassPermissions"), Rights(book, "default", whose="lead~1")))
    assert "(rights of lead~1)" in (await ask(both, ctx, "Bash", command="make")).reason


async def test_without_any_rights_nothing_is_allowed(ctx: ToolContext) -> None:
    assert (await ask(PermissionPolicy(()), ctx, "Read", file_path="a.py")).behavior == "deny"


async def test_one_denial_too_many_comes_with_advice_and_a_success_ends_the_row(ctx: ToolContext) -> None:
    rights = policy(ctx)
    texts = [(await ask(rights, ctx, "Bash", command="make")).reason for _ in range(3)]
    assert ["Change your approach" in text for text in texts] == [False, False, True]
    await ask(rights, ctx, "Read", file_path="a.py")
    assert "Change your approach" not in (await ask(rights, ctx, "Bash", command="make")).reason


async def test_a_doubt_of_validation_is_a_no_when_nobody_can_be_asked(ctx: ToolContext) -> None:
    rights = policy(ctx, "bypassPermissions", allow=("Silent",))
    decision = await rights.decide(Silent(), Words(), ctx, forced_ask="is this meant?")
    assert (decision.behavior, decision.source) == ("deny", "validation")


async def test_an_allow_rule_covers_a_tool_that_says_nothing(ctx: ToolContext) -> None:
    decision = await policy(ctx, allow=("Mine",)).decide(tool("Mine"), Words(), ctx, forced_ask=None)
    assert decision.source == "spec rule Mine"
