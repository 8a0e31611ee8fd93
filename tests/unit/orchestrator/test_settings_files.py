"""What one settings file says, agent definitions as other programs write them, and instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.orchestrator.settings.definitions import definitions_in, front_matter, read_definition
from retinue.orchestrator.settings.files import Brought
from retinue.orchestrator.settings.load import load_settings, trusted_part
from retinue.orchestrator.settings.notes import MOST_CHARACTERS, gather_notes, imports_of
from retinue.orchestrator.settings.parse import parse_settings
from retinue.orchestrator.settings.places import UserPlaces, counts
from retinue.orchestrator.settings.remember import with_rules
from retinue.tools.errors import SpecError

PLACES = UserPlaces.of({"HOME": "/home/ada"})


def nothing(path: Path) -> None:
    return None


@pytest.mark.parametrize(
    ("text", "name", "foreign", "said"),
    [
        (
            "permissions:\n  alow: [Read]\n",
            "s.yaml",
            False,
            's.yaml:2:3: permissions.alow: there is no key "alow"; allowed: allow, ask',
        ),
        (
            '{\n "permissions": {\n  "deny": ["Bash()"]}}',
            "s.json",
            True,
            "s.json:3:12: permissions.deny[0]: 'Bash()' has nothing between",
        ),
        (
            '{\n "permissions":\n  {"defaultMode": "fast"}}',
            "s.json",
            True,
            "s.json:3:19: permissions.defaultMode: input should be",
        ),
        ("{", "s.json", True, "s.json:1:2: no JSON"),
        ("[]", "s.json", True, "s.json: expected a mapping of keys"),
        (
            "permissions: {allow: ['x*']}",
            "s.yaml",
            False,
            "s.yaml:1:23: permissions.allow[0]: 'x*' allows tools by a wildcard",
        ),
        (
            "permissions: {deny: ['Bash(command:rm)']}",
            "s.yaml",
            False,
            "can never fit: write Bash(…) with what command may hold",
        ),
        ("env: {A: [1]}", "s.yaml", False, "s.yaml:1:7: env.A: input should be a valid string"),
        ("a: 1\na: 2\n", "s.yaml", False, "s.yaml:2:1"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_key(text: str, name: str, foreign: bool, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_settings(text, name, foreign=foreign)
    assert said in str(caught.value)


def test_of_a_foreign_file_what_has_no_effect_is_named_and_the_rest_counts() -> None:
    found = parse_settings(
        '{"$schema": "x", "statusLine": {},'
        ' "permissions": {"allow": ["Read", "*"], "defaultMode": "auto", "other": 1}}',
        ".claude/settings.json",
        foreign=True,
    )
    assert found.content.permissions.allow == ("Read",)
    assert found.ignored == (
        "statusLine",
        "permissions.other",
        "permissions.defaultMode (auto)",
        "permissions.allow[1] (*)",
    )


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "RAY_ADDRESS", "GIT_DIR", "TMUX"])
def test_no_key_of_a_model_and_nothing_that_steers_us_reaches_tools(name: str) -> None:
    text = f'{{"env": {{"{name}": "x", "A": "1"}}}}'
    found = parse_settings(text, "s.json", foreign=True)
    assert (found.content.env, found.ignored) == ({"A": "1"}, (f"env.{name}",))
    with pytest.raises(SpecError, match=rf"env.{name}: tools never get {name}; remove it"):
        parse_settings(text, "s.yaml", foreign=False)


@pytest.mark.parametrize("text", ["", "  \n", "{}", '{\n\t"permissions": {\n\t\t"allow": []\n\t}\n}'])
def test_an_empty_file_and_one_with_tabs_say_nothing_wrong(text: str) -> None:
    assert parse_settings(text, "s.json", foreign=True).content.permissions.allow == ()


def test_a_rule_is_kept_beside_all_else_that_stands_in_the_file() -> None:
    before = "# mine\npermissions:\n  deny: [Read(.env)]  # secrets\n"
    after = with_rules(before, ["Bash(make:*)", "Edit(/a b.py)"], "s.yaml")
    assert after.startswith(before)
    assert parse_settings(after, "s.yaml", foreign=False).content.permissions.allow == ("Bash(make:*)", "Edit(/a b.py)")
    assert with_rules(after, ["Bash(make:*)"], "s.yaml") == after


AGENT = b"""---
name: code-reviewer
description: "Use when: code was written"
tools: Read, Bash(git diff:*), Agent(explore, plan)
model: opus
permissionMode: acceptEdits
mcpServers:
  - docs:
      command: x
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: check
color: red
---
Review it.
"""


def test_a_definition_of_another_program_is_taken_as_it_is() -> None:
    found = read_definition(AGENT, "a.md", trusted=True)
    assert found.definition is not None
    assert (found.definition.name, found.definition.description) == ("code-reviewer", "Use when: code was written")
    assert found.definition.tools == ("Read", "Bash(git diff:*)", "Agent(explore, plan)")
    assert (found.definition.mode, found.definition.prompt) == ("acceptEdits", "Review it.")
    assert found.warnings == ("a.md: without effect here: model, mcpServers",)
    assert list(found.definition.hooks) == ["PreToolUse"]
    untrusted = read_definition(AGENT, "a.md", trusted=False)
    assert untrusted.definition is not None
    assert untrusted.definition.hooks == {}
    assert (untrusted.definition.mode, untrusted.withheld) == (None, ("a.md: the mode acceptEdits, mcpServers, hooks",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no front",
        "---\nname: x\n---\nText",
        "---\nname: A B\ndescription: d\n---\nText",
        "---\nname: a\ndescription: d\n---\n",
    ],
)
def test_what_is_no_definition_is_left_out_with_a_word(text: str) -> None:
    found = read_definition(text.encode(), "a.md", trusted=True)
    assert (found.definition, len(found.warnings)) == (None, 1)


def test_front_matter_joins_lines_and_reads_lists() -> None:
    text = "description: >\n  one\n  two\ntools:\n  - Read\n  - 'Grep'\nname: x\n  y\n"
    assert front_matter(text) == {"description": "one two", "tools": ("Read", "Grep"), "name": "x y"}


def test_no_untrusted_definition_takes_the_place_of_a_built_in_one() -> None:
    contents = {".claude/agents/x.md": AGENT.replace(b"code-reviewer", b"explore")}
    (taken,) = definitions_in(contents, trusted=True, foreign=True)
    assert taken.definition is not None
    (refused,) = definitions_in(contents, trusted=False, foreign=True)
    assert refused.definition is None
    assert refused.withheld[0] == ".claude/agents/x.md: in the place of the built-in explore"


def test_definitions_of_others_can_be_left_out() -> None:
    contents = {".claude/agents/x.md": AGENT, ".retinue/agents/y.md": AGENT.replace(b"code-reviewer", b"own")}
    assert len(definitions_in(contents, trusted=True, foreign=True)) == 2
    (own,) = definitions_in(contents, trusted=True, foreign=False)
    assert own.definition is not None
    assert own.definition.name == "own"


def test_instructions_bring_in_what_they_import_once_and_never_from_elsewhere() -> None:
    contents = {
        "CLAUDE.md": b"Read @docs/a.md, mail me@docs/b.md, `@docs/b.md`, @../outside, @/etc/passwd\n"
        b"```\n@docs/b.md\n```\n",
        "docs/a.md": b"A @../CLAUDE.md @b.md",
        "docs/b.md": b"B",
    }
    notes = gather_notes(contents, PLACES, nothing, (), foreign=True)
    assert notes.count("A @../CLAUDE.md") == 1
    assert notes.count("[docs/b.md:]") == 1
    assert imports_of("CLAUDE.md", contents["CLAUDE.md"]) == ("docs/a.md",)


def test_instructions_are_bounded_and_the_same_text_is_said_once() -> None:
    same = gather_notes({"CLAUDE.md": b"x", "AGENTS.md": b"x"}, PLACES, nothing, (), foreign=True)
    assert same == "# From CLAUDE.md\nx"
    long = gather_notes({"CLAUDE.md": b"x" * 100_000}, PLACES, nothing, (), foreign=True)
    assert len(long) < MOST_CHARACTERS + 200
    assert "Cut here" in long


FILES = {
    "/home/ada/.claude/settings.json": b'{"permissions": {"allow": ["Glob"]}, "env": {"A": "user"}}',
    "/home/ada/.config/retinue/settings.yaml": b"permissions: {deny: [WebFetch]}",
    "/etc/retinue/settings.yaml": b"env: {B: policy}",
    "/flag/s.yaml": b"env: {A: flag, B: flag}",
}
BROUGHT = Brought(
    {
        ".claude/settings.json": b'{"env": {"A": "project"},'
        b' "permissions": {"allow": ["Bash(make)"], "deny": ["Read(.env)"]}}',
        ".claude/settings.local.json": b'{"permissions": {"allow": ["Bash(npm test)"]}}',
        ".mcp.json": b"{}",
        ".claude/skills/s/SKILL.md": b"x",
        "CLAUDE.md": b"Use tabs.",
    }
)


def read(path: Path) -> bytes | None:
    return FILES.get(str(path))


def test_all_layers_come_together_with_the_folder_that_their_rules_start_from() -> None:
    found = load_settings(BROUGHT, PLACES, trusted=True, flag=Path("/flag/s.yaml"), read=read)
    assert [(each.source, each.base) for each in found.settings.rules] == [
        ("user", "/home/ada/.claude"),
        ("user", "/home/ada/.config/retinue"),
        ("project", None),
        ("local", None),
    ]
    assert dict(found.env) == {"A": "flag", "B": "policy"}
    assert (found.withheld, found.settings.notes) == ((), "# From CLAUDE.md\nUse tabs.")


def test_without_trust_a_repository_forbids_and_tells_but_grants_nothing() -> None:
    found = load_settings(BROUGHT, PLACES, trusted=False, read=read)
    assert [
        (each.source, each.allow, each.deny) for each in found.settings.rules if each.source in ("project", "local")
    ] == [("project", (), ("Read(.env)",))]
    assert dict(found.env) == {"A": "user", "B": "policy"}
    assert found.withheld == (
        ".claude/settings.json: 1 allow rule, 1 variable",
        ".claude/settings.local.json: 1 allow rule",
        ".mcp.json: the servers in it",
        "1 skill: the tools that they allow, and the commands in them",
    )
    assert found.settings.notes == "# From CLAUDE.md\nUse tabs."


def test_one_key_leaves_out_everything_foreign_also_what_is_wrong_in_it() -> None:
    off = {"/home/ada/.config/retinue/settings.yaml": b"compatibility: false"}
    broken = Brought({".claude/settings.json": b"{", "CLAUDE.md": b"x", ".claude/agents/a.md": AGENT})
    found = load_settings(broken, PLACES, trusted=True, read=lambda path: off.get(str(path)))
    assert (found.settings.rules, found.settings.notes, dict(found.definitions)) == ((), "", {})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".claude/settings.json", True),
        (".claude/hooks/x.sh", True),
        (".retinue/agents/x.md", True),
        (".mcp.json", True),
        ("CLAUDE.md", False),
        (".claude/CLAUDE.md", False),
        (".claude/worktrees/x/y", False),
        ("src/.claude.py", False),
    ],
)
def test_trust_is_about_what_runs_grants_or_routes(path: str, said: bool) -> None:
    assert counts(path) is said
    assert (path in trusted_part(Brought({path: b""}))) is said
