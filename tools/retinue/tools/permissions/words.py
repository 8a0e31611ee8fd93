"""What a model is told when a call was denied: what denied it, and what would allow it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from retinue.tools.base import AnyTool, CommandSubject, Decision, NameSubject, PathSubject, Subject
from retinue.tools.permissions.commands import is_exact, literal, runs_uncovered
from retinue.tools.permissions.facts import Facts
from retinue.tools.permissions.rules import RuleBook

_SHOWN_RULES = 5
_LONGEST_SUGGESTION = 200
_GLOB = str.maketrans({c: f"\\{c}" for c in "\\*?[]!#"})


def denial_text(tool: AnyTool, facts: Facts, verdict: Decision, books: Iterable[RuleBook], root: Path) -> str:
    """One paragraph. A question that nobody can answer says which rule would have made it needless."""
    parts = [f"Permission denied for {tool.name}: {verdict.reason}."]
    if verdict.behavior == "ask":
        parts.append("Nobody is there to be asked.")
    if _rule_would_help(facts, verdict):
        rule = suggestion(tool, facts.subject, root)
        parts.append(f"The person who started you could allow it with the rule `{rule}` under permissions.allow.")
    if isinstance(facts.subject, CommandSubject) and (known := _known_commands(tool, books)):
        parts.append(f"Commands that are allowed, exactly as written: {known}.")
    return " ".join(parts)


def suggestion(tool: AnyTool, subject: Subject, root: Path) -> str:
    """The narrowest rule that would allow this call."""
    match subject:
        case CommandSubject(text):
            command = text.strip()
            fits = len(command) <= _LONGEST_SUGGESTION and "\n" not in command
            return f"{tool.name}({command.replace('*', chr(92) + '*')})" if fits else tool.name
        case PathSubject(path, write):
            name = "Edit" if write else "Read"
            inner = path.relative_to(root) if path.is_relative_to(root) else None
            anchored = f"/{inner}" if inner is not None else f"/{path}"
            return f"{name}({anchored.translate(_GLOB)})"
        case NameSubject(name):
            return f"{tool.name}({name})" if name else tool.name


def _rule_would_help(facts: Facts, verdict: Decision) -> bool:
    """Not against a deny or ask rule, a protected path, or a command that no rule covers."""
    if isinstance(facts.subject, CommandSubject) and runs_uncovered(facts.subject.text):
        return False
    return verdict.source.startswith(("mode ", "workspace boundary"))


def _known_commands(tool: AnyTool, books: Iterable[RuleBook]) -> str:
    lists = [
        [
            literal(rule.content)
            for rule in book.of_behavior("allow")
            if rule.tool == tool.name and rule.content is not None and is_exact(rule.content)
        ]
        for book in books
    ]
    common = [text for text in lists[0] if all(text in other for other in lists[1:])] if lists else []
    return ", ".join(f"`{text}`" for text in dict.fromkeys(common[:_SHOWN_RULES]))
