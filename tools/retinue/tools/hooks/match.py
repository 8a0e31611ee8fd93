"""Which hooks an event concerns: matchers, and the condition `if`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.tools.base import AnyTool, CommandSubject, PathSubject, ToolContext, ToolInput
from retinue.tools.registry.filters import names_tool

if TYPE_CHECKING:
    from retinue.tools.permissions.rules import Anchors, Rule

Fits = Callable[[str], bool]

_LIST = re.compile(r"[A-Za-z0-9_\-, |]*\Z")
_SPLIT = re.compile(r"[|,]")


@lru_cache(maxsize=256)
def matcher_of(matcher: str) -> Fits:
    """Nothing and `*` fit all. Plain names are a list, compared whole; else a regular expression, found anywhere.

    Raises re.error.
    """
    if matcher.strip() in ("", "*"):
        return _everything
    if _LIST.match(matcher):
        names = frozenset(name.strip() for name in _SPLIT.split(matcher))
        return lambda subject: subject in names
    pattern = re.compile(matcher)
    return lambda subject: pattern.search(subject) is not None


def _everything(_subject: str) -> bool:
    return True


def concerns(matcher: str, subjects: Iterable[str]) -> bool:
    """`subjects`: all names of what it is about; an event that is about nothing concerns every hook."""
    known = tuple(subjects)
    return not known or any(map(matcher_of(matcher), known))


@dataclass(frozen=True, slots=True)
class Call:
    """The call that an event is about."""

    tool: AnyTool
    args: ToolInput
    ctx: ToolContext

    @property
    def names(self) -> tuple[str, ...]:
        return (self.tool.name, *self.tool.aliases)


def fits_condition(condition: str, call: Call) -> bool:
    """Whether the call is one that this permission rule would ask about. A command that cannot be read fits."""
    from retinue.tools.permissions.rules import Anchors, parse_rule  # here: few hooks have a condition

    rule = parse_rule(condition, "ask")
    anchors = Anchors(call.ctx.root, Path(call.ctx.env.get("HOME") or "/nonexistent"))
    subject = call.tool.subject(call.args, call.ctx)
    if isinstance(subject, CommandSubject):
        return names_tool(rule.tool, call.tool) and _fits_command(rule, subject.text, call.ctx)
    return _fits_rest(rule, anchors, call)


def _fits_command(rule: Rule, command: str, ctx: ToolContext) -> bool:
    from retinue.tools.shell.analysis.rules import first_fitting
    from retinue.tools.shell.commands import without_disk

    survey = without_disk(command, ctx)
    if survey.reading.status == "broken":
        return True
    return first_fitting((rule,), (words for words, _ in survey.commands)) is not None


def _fits_rest(rule: Rule, anchors: Anchors, call: Call) -> bool:
    from retinue.tools.permissions.facts import resolved
    from retinue.tools.permissions.rules import RuleBook

    book = RuleBook((rule,), anchors)
    subject = call.tool.subject(call.args, call.ctx)
    assert not isinstance(subject, CommandSubject)
    path = resolved(subject.path, reading=not subject.write) if isinstance(subject, PathSubject) else None
    found = book.first("ask", call.tool, subject, path) or book.by_parameter(call.tool, call.args)
    return found is not None
