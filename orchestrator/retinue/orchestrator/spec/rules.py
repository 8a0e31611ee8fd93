"""The syntax of permission rules and tool lists: `Tool`, `Tool(content)`, and wildcards in tool names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from dataclasses import replace

from retinue.orchestrator.spec.problems import Path, Problem, nearest, quoted
from retinue.orchestrator.spec.structure import refused_yet
from retinue.orchestrator.spec.vocabulary import LATER_TOOLS, NOT_SUPPORTED_YET, TOOLS, NotYet

_RULE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)(?:\((.*)\))?\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_*?-]+\Z")


def check_rule(rule: str, path: Path, *, denies: bool) -> Iterator[Problem]:
    """A rule of allow, ask or deny. To deny a tool that is not there yet is no mistake."""
    found = _RULE.match(rule)
    if found is None or (found[2] is not None and not found[2].strip()):
        what = f"expected Tool or Tool(content), found {quoted(rule)}"
        yield Problem("value", path, what, rule, remedy="as in Read or Bash(make test)")
        return
    if not (denies and is_later_tool(found[1])):
        yield from _check_tool(found[1], path)


def check_tool_pattern(pattern: str, path: Path, *, denies: bool) -> Iterator[Problem]:
    """An entry of `tools`: a name, or a wildcard that names at least one tool."""
    if not _NAME.match(pattern):
        remedy = "rules with content belong under permissions" if "(" in pattern else ""
        yield Problem("value", path, f"expected the name of a tool, found {quoted(pattern)}", pattern, remedy=remedy)
    elif pattern.startswith("mcp__") or any(fnmatch.fnmatchcase(tool, pattern) for tool in TOOLS):
        return
    elif "*" in pattern or "?" in pattern:
        what = f"no tool is named like {quoted(pattern)}"
        yield Problem("value", path, what, pattern, TOOLS)
    elif not (denies and is_later_tool(pattern)):
        yield from _check_tool(pattern, path)


def is_later_tool(name: str) -> bool:
    return name in LATER_TOOLS


def _check_tool(tool: str, path: Path) -> Iterator[Problem]:
    if is_later_tool(tool):
        yield _yet("tool", path, tool)
    elif tool not in TOOLS and not tool.startswith("mcp__"):
        yield Problem("value", path, f"unknown tool {quoted(tool)}", tool, TOOLS, nearest(tool, TOOLS))


def _yet(match: str, path: Path, found: str) -> Problem:
    return replace(refused_yet(_row(match, found), path, found), on_key=False)


def _row(match: str, found: str) -> NotYet:
    rows = [row for row in NOT_SUPPORTED_YET if row.match == match]
    return next((row for row in rows if found in row.values), rows[0])
