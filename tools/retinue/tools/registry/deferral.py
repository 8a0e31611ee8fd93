"""Which tools the model finds by search first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.base import AnyTool

SEARCH_TOOL = "ToolSearch"
FEWEST_AT_HAND = 3
"""So many tools besides the search stay with the model from the start, where there are as many."""


def deferred_names(tools: Sequence[AnyTool]) -> frozenset[str]:
    """None without the tool that searches, which itself is never deferred. The first of a short pool stay at hand."""
    if not any(tool.name == SEARCH_TOOL for tool in tools):
        return frozenset()
    later = [tool.name for tool in tools if tool.should_defer and tool.name != SEARCH_TOOL]
    at_hand = len(tools) - len(later) - 1
    return frozenset(later[max(0, FEWEST_AT_HAND - at_hand) :])
