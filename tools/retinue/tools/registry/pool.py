"""The sorted list of tools that one agent's model sees. Pure: which tools there are is passed in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pydantic import JsonValue

from retinue.tools.base import AnyTool
from retinue.tools.registry.filters import PoolFilter, PoolMode, filters_of, restrictions


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


class ToolsAtHand(Protocol):
    """The tools that calls are looked up in; they may change between two messages."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def only_names(self) -> Mapping[str, frozenset[str]]: ...

    def find(self, name: str) -> Found | None: ...


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
    mode: PoolMode | None = None,
    useless: Callable[[AnyTool], str] | None = None,
) -> ToolPool:
    """The pool of one agent: all tools, less what may never run here, less what its definition leaves out.

    denied   names in tool-wide deny rules, with wildcards; `mcp__server` names all tools of that server
    chosen   the agent's own lists; a wrong entry in them is a SpecError
    useless  why a tool has nothing to work with here; empty when it has
    """
    own = tuple(builtin)
    filters = filters_of(frozenset(tool.name for tool in own), tuple(denied), chosen, mode, useless)
    seen: set[str] = set()
    prefix = _sorted((tool for tool in own if not filters.absence(tool)), seen)
    suffix = _sorted((tool for tool in others if not filters.absence(tool)), seen)
    tools = (*prefix, *suffix)
    return ToolPool(tools, len(prefix), restrictions(filters.allow or (), tools))


def _sorted(tools: Iterable[AnyTool], seen: set[str]) -> tuple[AnyTool, ...]:
    """Sorted by name; of several with one name the first stays. `seen` carries over from part to part."""
    kept: list[AnyTool] = []
    for tool in tools:
        if tool.name not in seen:
            seen.add(tool.name)
            kept.append(tool)
    return tuple(sorted(kept, key=lambda tool: tool.name))
