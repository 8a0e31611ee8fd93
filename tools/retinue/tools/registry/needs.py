"""What a tool works with, and what is said where that is not there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from retinue.tools.base import AnyTool, ToolContext

LACKS: Mapping[str, str] = {
    "background": "nothing runs in the background here",
    "board": "there is no task board",
    "catalog": "no tool is left out until it is searched for",
    "children": "no sub-agents can be started",
    "config": "there are no settings to look at",
    "history": "there is no conversation to shorten",
    "human": "nobody is there to be asked",
    "languages": "no language server is set (lsp)",
    "lasting": "nothing lasts from call to call",
    "mail": "there is nobody to write to",
    "mcp": "no MCP server is set (mcp_servers)",
    "peers": "there is no team",
    "plan": "there is no plan mode",
    "search": "no web search is set (web.search)",
    "skills": "there are no skills",
    "team_admin": "teams cannot be made here",
    "todos": "no list is kept here",
    "waiting": "nobody can be waited for",
    "worktrees": "there are no worktrees",
}
"""By the field of `ToolContext` that is None."""

NOT_GIVEN = "it has nothing to work with here"


def lacking(tool: AnyTool, ctx: ToolContext) -> str:
    """Why the tool is of no use in these surroundings; empty when it is."""
    without = next((need for need in tool.needs if getattr(ctx, need) is None), None)
    if without is not None:
        return LACKS.get(without, NOT_GIVEN)
    return "" if tool.is_available(ctx) else NOT_GIVEN


def lacking_without(absent: Collection[str]) -> Callable[[AnyTool], str]:
    """The same where only names of what is absent are known."""

    def why(tool: AnyTool) -> str:
        return next((LACKS.get(need, NOT_GIVEN) for need in tool.needs if need in absent), "")

    return why
