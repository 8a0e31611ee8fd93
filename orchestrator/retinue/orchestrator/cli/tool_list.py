"""What is to be said of each tool in a list. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from retinue.agents.definition import AgentDefinition
from retinue.tools.base import AnyTool, Traits
from retinue.tools.registry.builtin import built_in, builtin_tools
from retinue.tools.registry.filters import Filters, PoolFilter, PoolMode, filters_of
from retinue.tools.registry.needs import lacking_without
from retinue.tools.registry.table import BASE_TOOLS, SEARCH, Entry

Answer = Literal["yes", "no", "by call"]
WHERE_SET = frozenset({"search", "languages", "mcp", "skills", "catalog", "human", "team_admin"})
"""What no agent has by itself: a spec, the settings, a model or a person bring it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """`safe` and `read_only` may depend on the call. `absent` says why the agent lacks it; empty when it has it."""

    name: str
    group: str
    origin: str
    safe: Answer
    read_only: Answer
    deferred: bool
    absent: str
    description: str


def listed(
    definition: AgentDefinition | None, mode: PoolMode, denied: tuple[str, ...], *, embedded_search: bool
) -> tuple[Listed, ...]:
    """In the order of their groups. Raises SpecError for a wrong entry in the definition."""
    tools = {tool.name: tool for tool in builtin_tools()}
    lists = None if definition is None else PoolFilter(definition.tools, definition.disallowed_tools)
    left = [name for name in tools if not (embedded_search and name in SEARCH)]
    filters = filters_of(frozenset(left), denied, lists, mode, lacking_without(WHERE_SET))
    return tuple(_rows(tools, filters))


def _rows(tools: dict[str, AnyTool], filters: Filters) -> Iterator[Listed]:
    there = {entry.name for entry in built_in()}
    for entry in BASE_TOOLS:
        if entry.name in there:
            tool = tools[entry.name]
            searches = entry.name in SEARCH and entry.name not in filters.names
            why = "the shell has a search of its own" if searches else filters.absence(tool)
            yield _of_tool(entry, tool, why)
        else:
            yield Listed(entry.name, entry.group, "built-in", "no", "no", False, f"{entry.gate} is not built in", "")


def _of_tool(entry: Entry, tool: AnyTool, absent: str) -> Listed:
    traits = _traits_of_every_call(tool)
    return Listed(
        name=tool.name,
        group=entry.group,
        origin="built-in",
        safe=_answer(None if traits is None else traits.concurrency_safe),
        read_only=_answer(None if traits is None else traits.read_only),
        deferred=tool.should_defer,
        absent=absent,
        description=tool.description(),
    )


def _answer(known: bool | None) -> Answer:
    return "by call" if known is None else "yes" if known else "no"


class _Untouched:
    """An input that cannot be looked at."""

    def __getattr__(self, name: str) -> object:
        raise LookupError(name)


def _traits_of_every_call(tool: AnyTool) -> Traits | None:
    """None when they depend on the input: who answers without looking at it says the same of every call."""
    try:
        return tool.traits(_Untouched())
    except Exception:
        return None
