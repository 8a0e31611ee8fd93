"""Makes the tools of the table, as far as they were built in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from retinue.tools.base import AnyTool
from retinue.tools.registry.gates import GATES
from retinue.tools.registry.table import BASE_TOOLS, SEARCH, Entry


def builtin_tools(*, embedded_search: bool = False) -> tuple[AnyTool, ...]:
    """One of each, in the order of their groups; the pool sorts them for the model.

    embedded_search  the shell has a search of its own: the tools for it are left out
    """
    left_out = SEARCH if embedded_search else frozenset[str]()
    return tuple(_made(entry) for entry in built_in() if entry.name not in left_out)


@cache
def builtin_tool(name: str) -> AnyTool | None:
    """The one of that name alone; no other is imported."""
    return next((_made(entry) for entry in built_in() if entry.name == name), None)


def built_in(gates: Mapping[str, bool] = GATES) -> Iterator[Entry]:
    """The entries whose features are on, and whose modules this build has; nothing is imported."""
    for entry in BASE_TOOLS:
        if not entry.gate or (gates.get(entry.gate, False) and _is_there(entry)):
            yield entry


def _is_there(entry: Entry) -> bool:
    try:
        return find_spec(f"retinue.tools.{entry.folder}.tool") is not None
    except ModuleNotFoundError:  # not even the folder
        return False


def _made(entry: Entry) -> AnyTool:
    module: ModuleType = import_module(f"retinue.tools.{entry.folder}.tool")
    tool: AnyTool = getattr(module, entry.name)()
    return tool
