"""What a model is told when a call was denied: what denied it, and what would allow it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from retinue.tools.base import AnyTool, CommandSubject, Decision, NameSubject, PathSubject, Question, Subject
from retinue.tools.permissions.rules import RuleBook
from retinue.tools.registry.filters import names_tool

_SHOWN_RULES = 5
_GLOB = str.maketrans({c: f"\\{c}" for c in "\\*?[]!#"})


def denial_text(tool: AnyTool, subject: Subject, verdict: Decision, books: Iterable[RuleBook]) -> str:
    """One paragraph. A question that nobody can answer says which rules would have made it needless."""
    parts = [f"Permission denied for {tool.name}: {verdict.reason}."]
    if verdict.behavior == "ask":
        parts.append("Nobody is there to be asked.")
    if verdict.question is not None and (rules := verdict.question.suggestions):
        shown = ", ".join(f"`{rule}`" for rule in rules)
        word = "rule" if len(rules) == 1 else "rules"
        parts.append(f"The person who started you could allow it with the {word} {shown} under permissions.allow.")
    if isinstance(subject, CommandSubject) and (known := _known_commands(tool, books)):
        parts.append(f"Rules that allow commands: {known}.")
    return " ".join(parts)


def with_question(tool: AnyTool, subject: PathSubject | NameSubject, verdict: Decision, root: Path) -> Decision:
    """What a person would be asked. No rule helps against another rule, in the mode plan, or for a protected path."""
    by_mode = verdict.source.startswith("mode ") and verdict.source != "mode plan"
    helps = verdict.behavior != "allow" and (by_mode or verdict.source == "workspace boundary")
    if not helps and verdict.behavior != "ask":
        return verdict
    rules = (suggestion(tool, subject, root),) if helps else ()
    return replace(verdict, question=Question(source=verdict.source, suggestions=rules))


def suggestion(tool: AnyTool, subject: PathSubject | NameSubject, root: Path) -> str:
    """The narrowest rule that would allow this call."""
    match subject:
        case PathSubject(path, write):
            name = "Edit" if write else "Read"
            inner = path.relative_to(root) if path.is_relative_to(root) else None
            anchored = f"/{inner}" if inner is not None else f"/{path}"
            return f"{name}({anchored.translate(_GLOB)})"
        case NameSubject(name=name):
            return f"{tool.name}({name})" if name else tool.name


def _known_commands(tool: AnyTool, books: Iterable[RuleBook]) -> str:
    """The allow rules that all sets of rights have."""
    lists = [
        [str(rule) for rule in book.of_behavior("allow") if names_tool(rule.tool, tool) and rule.content is not None]
        for book in books
    ]
    common = [text for text in lists[0] if all(text in other for other in lists[1:])] if lists else []
    return ", ".join(f"`{text}`" for text in dict.fromkeys(common[:_SHOWN_RULES]))
