"""The sorted list of tools that one agent's model sees. Pure: which tools there are is passed in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from pydantic import JsonValue

from retinue.tools.base import AnyTool
from retinue.tools.errors import SpecError

_ENTRY = re.compile(r"([A-Za-z0-9_*?-]+)(?:\(([^()]*)\))?\Z")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told about one tool; stable over a run."""

    name: str
    description: str
    input_schema: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Found:
    """`alias` is the deprecated name that was used, empty for the tool's own."""

    tool: AnyTool
    alias: str = ""


@dataclass(frozen=True, slots=True)
class PoolFilter:
    """An agent's own lists of names and wildcards; None allows all. `Agent(a, b)` also restricts what it may start."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolPool:
    """Built-ins sorted as one prefix, all others sorted behind it: to add one of those changes no byte of the prefix.

    builtin      how many of `tools` are the prefix; the cache mark goes after the last of them
    only_names   of a tool like `Agent`: the names that its input may give
    """

    tools: tuple[AnyTool, ...]
    builtin: int
    only_names: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    @cached_property
    def _by_name(self) -> dict[str, Found]:
        aliases = {alias: Found(tool, alias) for tool in reversed(self.tools) for alias in tool.aliases}
        return aliases | {tool.name: Found(tool) for tool in self.tools}

    def find(self, name: str) -> Found | None:
        """A tool's own name comes before another's alias."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._specs

    @cached_property
    def _specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(tool.name, tool.prompt(), tool.json_schema()) for tool in self.tools)

    def serialised(self) -> bytes:
        """One line of JSON per tool, the same bytes in every process: what the prompt cache depends on."""
        return b"".join(
            json.dumps(
                {"name": spec.name, "description": spec.description, "input_schema": spec.input_schema},
                ensure_ascii=False,
                separators=(",", ":"),
            ).encode()
            + b"\n"
            for spec in self._specs
        )


def assemble(
    builtin: Iterable[AnyTool],
    others: Iterable[AnyTool] = (),
    *,
    denied: Iterable[str] = (),
    chosen: PoolFilter | None = None,
) -> ToolPool:
    """The pool of one agent: all tools, less what may never run here, less what its definition leaves out.

    denied   names in tool-wide deny rules, with wildcards; `mcp__server` names all tools of that server
    chosen   the agent's own lists; a wrong entry in them is a SpecError
    """
    filters = chosen or PoolFilter()
    allow = None if filters.allow is None else [_entry(text) for text in filters.allow]
    deny = [_entry(text)[0] for text in filters.deny]
    banned = [*denied, *deny]

    def keeps(tool: AnyTool) -> bool:
        if any(names_tool(pattern, tool) for pattern in banned) or not tool.is_enabled():
            return False
        return allow is None or any(names_tool(pattern, tool) for pattern, _ in allow)

    seen: set[str] = set()
    prefix = _sorted(filter(keeps, builtin), seen)
    suffix = _sorted(filter(keeps, others), seen)
    tools = (*prefix, *suffix)
    return ToolPool(tools, len(prefix), _restrictions(allow or [], tools))


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


def _sorted(tools: Iterable[AnyTool], seen: set[str]) -> tuple[AnyTool, ...]:
    """Sorted by name; of several with one name the first stays. `seen` carries over from part to part."""
    kept: list[AnyTool] = []
    for tool in tools:
        if tool.name not in seen:
            seen.add(tool.name)
            kept.append(tool)
    return tuple(sorted(kept, key=lambda tool: tool.name))


def _restrictions(
    allow: list[tuple[str, frozenset[str] | None]], tools: tuple[AnyTool, ...]
) -> dict[str, frozenset[str]]:
    """Several entries for one tool add up; an entry without names lifts the restriction."""
    result: dict[str, frozenset[str]] = {}
    for tool in tools:
        named = [names for pattern, names in allow if names_tool(pattern, tool)]
        given = [names for names in named if names is not None]
        if named and len(given) == len(named):
            result[tool.name] = frozenset().union(*given)
    return result
