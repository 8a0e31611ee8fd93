"""Rules as they are written, and the paths and names that they fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import AnyTool, Behavior, NameSubject, PathSubject
from retinue.tools.errors import SpecError
from retinue.tools.permissions.rules import Anchors, ResolvedPath, Rule, RuleBook, RuleTexts, parse_rule
from retinue.tools.registry.builtin import builtin_tools
from support.calls import tool

ROOT, HOME = Path("/srv/tree"), Path("/home/me")
TOOLS: dict[str, AnyTool] = {each.name: each for each in builtin_tools()}


def book(behavior: Behavior, *rules: str) -> RuleBook:
    return RuleBook.of([RuleTexts(**{behavior: rules})], Anchors(ROOT, HOME))


def fits(behavior: Behavior, rule: str, name: str, subject: PathSubject | NameSubject, real: str = "") -> bool:
    path = None
    if isinstance(subject, PathSubject):
        path = ResolvedPath(subject.path, Path(real) if real else subject.path)
    return book(behavior, rule).first(behavior, TOOLS[name], subject, path) is not None


def reads(path: str) -> PathSubject:
    return PathSubject(Path(path), write=False)


def writes(path: str) -> PathSubject:
    return PathSubject(Path(path), write=True)


@pytest.mark.parametrize(
    ("text", "tool_name", "content"),
    [
        ("Bash", "Bash", None),
        ("Bash(*)", "Bash", None),
        (" Read ", "Read", None),
        ("Bash(make test)", "Bash", "make test"),
        ("Bash(f(x) && (y))", "Bash", "f(x) && (y)"),
        ("mcp__db__*", "mcp__db__*", None),
    ],
)
def test_a_rule_is_a_tool_with_or_without_content(text: str, tool_name: str, content: str | None) -> None:
    assert parse_rule(text, "allow", "cli") == Rule("allow", tool_name, content, "cli")


@pytest.mark.parametrize(
    ("text", "behavior", "complaint"),
    [
        ("", "deny", "is no permission rule"),
        ("Bash(make", "deny", "is no permission rule"),
        ("make test", "deny", "is no permission rule"),
        ("Bash()", "deny", "nothing between its brackets"),
        ("Read(!a)", "deny", "is negated"),
        ("*", "allow", "allows tools by a wildcard"),
        ("mcp__*", "allow", "allows tools by a wildcard"),
    ],
)
def test_what_is_no_rule_is_refused_with_a_remedy(text: str, behavior: Behavior, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        parse_rule(text, behavior)


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("//etc/**", "/etc/hosts", True),
        ("//etc/**", "/srv/tree/etc/hosts", False),
        ("~/.ssh/**", "/home/me/.ssh/id", True),
        ("~/.ssh/**", "/srv/tree/.ssh/id", False),
        ("~", "/home/me/x", True),
        ("/src/*.py", "/srv/tree/src/a.py", True),
        ("/src/*.py", "/srv/tree/lib/src/a.py", False),
        ("/src/*.py", "/src/a.py", False),
        ("src/a.py", "/srv/tree/src/a.py", True),
        ("./src/a.py", "/srv/tree/src/a.py", True),
        ("*.key", "/srv/tree/deep/er/a.key", True),
        ("*.key", "/elsewhere/a.key", False),
        ("build/", "/srv/tree/x/build/out", True),
        ("**", "/srv/tree/any/thing", True),
        ("#notes", "/srv/tree/#notes", True),
    ],
)
@pytest.mark.parametrize("behavior", ["allow", "deny"])
def test_path_rules_start_at_their_anchor(behavior: Behavior, rule: str, path: str, expected: bool) -> None:
    assert fits(behavior, f"Read({rule})", "Read", reads(path)) is expected


def test_a_folder_of_one_part_is_denied_at_any_depth_and_allowed_at_the_top_alone() -> None:
    assert fits("deny", "Read(src/**)", "Read", reads("/srv/tree/lib/src/a"))
    assert not fits("allow", "Read(src/**)", "Read", reads("/srv/tree/lib/src/a"))
    assert fits("allow", "Read(src/**)", "Read", reads("/srv/tree/src/a"))


def test_a_folder_itself_is_denied_with_all_that_is_in_it() -> None:
    assert fits("deny", "Read(secrets/)", "Grep", reads("/srv/tree/secrets"))
    folder = ResolvedPath(ROOT / "secrets", ROOT / "secrets", is_folder=True)
    for path, expected in ((folder, True), (replace(folder, is_folder=False), False)):
        rule = book("allow", "Read(secrets/)").first("allow", TOOLS["Grep"], reads("/srv/tree/secrets"), path)
        assert (rule is not None) is expected


@pytest.mark.parametrize(
    ("behavior", "rule", "name", "subject", "expected"),
    [
        ("allow", "Edit(a)", "Write", writes("/srv/tree/a"), True),
        ("allow", "Edit(a)", "Read", reads("/srv/tree/a"), True),
        ("deny", "Edit(a)", "Read", reads("/srv/tree/a"), False),
        ("deny", "Read(a)", "Grep", reads("/srv/tree/a"), True),
        ("deny", "Read(a)", "Glob", reads("/srv/tree/a"), True),
        ("deny", "Read(a)", "Edit", writes("/srv/tree/a"), True),
        ("deny", "Read(a)", "Write", writes("/srv/tree/a"), True),
        ("ask", "Read(a)", "Write", writes("/srv/tree/a"), False),
        ("allow", "Read(a)", "Write", writes("/srv/tree/a"), False),
        ("deny", "Edit", "Write", writes("/x"), True),
        ("deny", "Write", "Edit", writes("/x"), False),
        ("deny", "Write(a)", "Write", writes("/srv/tree/a"), True),
        ("allow", "Write(a)", "Write", writes("/srv/tree/a"), False),
        ("allow", "Write", "Write", writes("/srv/tree/a"), True),
        ("deny", "*", "Write", writes("/x"), True),
    ],
)
def test_rules_for_edit_and_read_speak_of_all_tools_that_do_so(
    behavior: Behavior, rule: str, name: str, subject: PathSubject | NameSubject, expected: bool
) -> None:
    assert fits(behavior, rule, name, subject) is expected


def test_a_link_is_denied_by_either_name_and_allowed_only_by_both() -> None:
    inside, outside = "/srv/tree/link", "/etc/passwd"
    assert fits("deny", "Read(//etc/**)", "Read", reads(inside), real=outside)
    assert fits("deny", "Read(link)", "Read", reads(inside), real=outside)
    assert not fits("allow", "Read(link)", "Read", reads(inside), real=outside)
    assert not fits("allow", "Read(//etc/**)", "Read", reads(inside), real=outside)
    assert fits("allow", "Read(//**)", "Read", reads(inside), real=outside)


def test_a_path_that_could_not_be_resolved_is_denied_and_never_allowed() -> None:
    for behavior, expected in (("deny", True), ("allow", False)):
        rule = book(behavior, "Read(a)").first(behavior, TOOLS["Read"], reads("/x"), None)
        assert (rule is not None) is expected


@pytest.mark.parametrize(
    ("rule", "kind", "expected"),
    [("Agent", "explore", True), ("Agent(explore)", "explore", True), ("Agent(explore)", "coder", False)],
)
def test_agents_are_named_by_their_kind(rule: str, kind: str, expected: bool) -> None:
    assert fits("deny", rule, "Agent", NameSubject(kind)) is expected
    assert fits("allow", rule, "Agent", NameSubject(kind)) is expected


def test_a_deprecated_name_in_a_rule_means_the_same_tool() -> None:
    assert fits("deny", "Task(explore)", "Agent", NameSubject("explore"))


def test_a_name_that_a_tool_does_not_give_is_denied_for_all_and_allowed_for_none() -> None:
    assert fits("deny", "SendMessage(bob)", "SendMessage", NameSubject())
    assert not fits("allow", "SendMessage(bob)", "SendMessage", NameSubject())


def test_a_server_rule_means_all_tools_of_that_server() -> None:
    own, other = tool("mcp__db__query"), tool("mcp__db2__query")
    rules = book("deny", "mcp__db")
    assert rules.first("deny", own, NameSubject(), None)
    assert not rules.first("deny", other, NameSubject(), None)


def test_tools_that_are_denied_as_a_whole_are_named_for_the_pool() -> None:
    rules = book("deny", "Bash", "Edit", "Read(a)", "mcp__*")
    assert rules.denied_tools() == ("Bash", "Edit", "NotebookEdit", "Write", "mcp__*")


def test_rules_are_printed_as_they_were_written() -> None:
    assert [str(rule) for rule in book("ask", "Bash(git push:*)", "Read").rules] == ["Bash(git push:*)", "Read"]
