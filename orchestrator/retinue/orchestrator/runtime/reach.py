"""What an agent's tools reach beside its team: a search of the web, and language servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.run_files import RunFiles
from retinue.tools.errors import SpecError, ToolError
from retinue.tools.lsp.manager import LanguageServers
from retinue.tools.mcp.names import tool_name
from retinue.tools.mcp.ports import McpPort, McpRequest
from retinue.tools.ports import Confinement, SearchAnswer, SearchProvider, SearchQuery, ServerSearchPort
from retinue.tools.text import one_line
from retinue.tools.web.search.providers import provider_of

LISTING_S = 10.0
"""How long a search waits for MCP servers that are still connecting."""


@dataclass(frozen=True, slots=True)
class NoSearch:
    """A search that is set and cannot be had: the agent that searches is told why."""

    why: str

    async def search(self, query: SearchQuery) -> SearchAnswer:
        del query
        raise ToolError(f"The web cannot be searched: {self.why}.")


@dataclass(frozen=True, slots=True)
class McpCalls:
    """Calls a tool of an MCP server by its full name."""

    port: McpPort

    async def __call__(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        listing = await self.port.listing(LISTING_S)
        facts = next((each for each in listing.tools if tool_name(each.server, each.name) == name), None)
        if facts is None:
            raise ToolError(f"The web cannot be searched: no MCP server of this run has the tool {name}.")
        request = McpRequest(server=facts.server, tool=facts.name, arguments=dict(arguments))
        answer = await self.port.call(request, _unseen)
        text = "\n".join(block.text for block in answer.blocks if block.kind == "text")
        if answer.is_error:
            raise ToolError(f"The search by {name} failed: {one_line(text, 500)}")
        return text


def search_of(files: RunFiles, mcp: McpPort | None) -> Callable[[ServerSearchPort], SearchProvider | None]:
    """The search that the launch decided on, given that of the model's provider. None: none was set."""
    settings = files.plan.settings.web.search
    key = files.private.search_key
    named = settings.endpoint.key_env if settings.endpoint is not None else None

    def made(server: ServerSearchPort) -> SearchProvider | None:
        try:
            return provider_of(
                settings,
                env={named: key} if named is not None and key is not None else {},
                server=server,
                call_mcp=McpCalls(mcp) if mcp is not None else None,
            )
        except SpecError as error:
            return NoSearch(str(error))

    return made


def languages_of(files: RunFiles, boot: AgentBoot, confinement: Confinement | None) -> LanguageServers | None:
    """None: no server is set, or nothing here could hold one that should be held."""
    plan = files.plan
    if not plan.settings.lsp or (plan.sandbox.state == "broken" and confinement is None):
        return None
    return LanguageServers(
        plan.settings.lsp,
        root=Path(boot.workspace.root),
        env=boot.env,
        confinement=confinement,
        tag=f"{boot.run}/{boot.agent}/lsp",
    )


def _unseen(text: str) -> None:
    del text
