"""Which of all tools one agent has, and why it lacks the others. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from retinue.tools.base import AnyTool
from retinue.tools.errors import SpecError
from retinue.tools.registry.table import BACKGROUND_KEEPS, NESTED_LOSES, SIMPLE, WRAPPED_BY_REPL

_ENTRY = re.compile(r"([A-Za-z0-9_*?-]+)(?:\(([^()]*)\))?\Z")

Allowed = tuple[tuple[str, frozenset[str] | None], ...]
"""Names with wildcards, each with what `Agent(a, b)` has between its brackets."""


@dataclass(frozen=True, slots=True)
class PoolFilter:
    """An agent's own lists of names and wildcards; None allows all. `Agent(a, b)` also restricts what it may start."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolMode:
    """In what manner an agent works.

    simple      the smallest set of tools: Bash, Read and Edit
    repl        through the REPL, which wraps the tools of files and shell
    nested      it was started by another agent
    background  nobody waits for it
    """

    simple: bool = False
    repl: bool = False
    nested: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class Filters:
    """All that can keep a tool from an agent.

    names    of all built-in tools
    useless  why a tool has nothing to work with here; empty when it has
    """

    denied: tuple[str, ...]
    allow: Allowed | None
    deny: tuple[str, ...]
    mode: PoolMode
    names: Collection[str] = field(default=())
    useless: Callable[[AnyTool], str] | None = None

    def absence(self, tool: AnyTool) -> str:
        """Why the agent has no such tool, in words; empty when it has."""
        if by := next((pattern for pattern in self.denied if names_tool(pattern, tool)), None):
            return f"the deny rule {by}"
        if why := self._by_mode(tool):
            return why
        if by := next((pattern for pattern in self.deny if names_tool(pattern, tool)), None):
            return f"the definition leaves out {by}"
        if self.allow is not None and not any(names_tool(pattern, tool) for pattern, _ in self.allow):
            return "the definition does not name it"
        if self.useless is not None and (why := self.useless(tool)):
            return why
        return "" if tool.is_enabled() else "it is not enabled here"

    def _by_mode(self, tool: AnyTool) -> str:
        if tool.name not in self.names:
            return ""  # tools of MCP servers: modes speak of built-in tools only, but for the simple one
        repl = self.mode.repl and "REPL" in self.names
        if self.mode.simple and tool.name not in ({"REPL"} if repl else SIMPLE):
            return "the simple mode"
        if repl and tool.name in WRAPPED_BY_REPL:
            return "the REPL wraps it"
        if self.mode.nested and tool.name in NESTED_LOSES:
            return "it is not for agents of agents"
        if self.mode.background and tool.name not in BACKGROUND_KEEPS:
            return "it is not for agents in the background"
        return ""


def filters_of(
    names: Collection[str],
    denied: Collection[str],
    chosen: PoolFilter | None,
    mode: PoolMode | None,
    useless: Callable[[AnyTool], str] | None = None,
) -> Filters:
    """SpecError for an entry that is no name of a tool."""
    lists = chosen or PoolFilter()
    allow = None if lists.allow is None else tuple(_entry(text) for text in lists.allow)
    deny = tuple(_entry(text)[0] for text in lists.deny)
    return Filters(tuple(denied), allow, deny, mode or PoolMode(), names, useless)


def restrictions(allow: Allowed, tools: Collection[AnyTool]) -> dict[str, frozenset[str]]:
    """Several entries for one tool add up; an entry without names lifts the restriction."""
    result: dict[str, frozenset[str]] = {}
    for tool in tools:
        named = [names for pattern, names in allow if names_tool(pattern, tool)]
        given = [names for names in named if names is not None]
        if named and len(given) == len(named):
            result[tool.name] = frozenset().union(*given)
    return result


def names_tool(pattern: str, tool: AnyTool) -> bool:
    """Whether a name with wildcards means this tool, or its whole MCP server. An alias is meant by its whole name only:
    `Task*` is the task tools, not the Agent tool, which was once called Task.
    """
    if pattern.startswith("mcp__") and tool.name.startswith(f"{pattern}__"):
        return True
    return fnmatchcase(tool.name, pattern) or pattern in tool.aliases


def _entry(text: str) -> tuple[str, frozenset[str] | None]:
    found = _ENTRY.match(text.strip())
    if found is None:
        raise SpecError(f"tools: {text!r} is no name of a tool: write Tool, a wildcard like Task*, or Agent(type, …)")
    names = frozenset(name.strip() for name in (found[2] or "").split(",") if name.strip())
    if found[2] is not None and not names:
        raise SpecError(f"tools: {text!r} names nothing between its brackets: write Agent(type, …) or Agent")
    return found[1], names if names and "*" not in names else None
