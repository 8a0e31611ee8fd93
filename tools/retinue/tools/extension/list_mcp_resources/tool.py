"""ListMcpResources: what MCP servers have to read."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    READS,
    Decision,
    NameSubject,
    OnProgress,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.errors import ToolError
from retinue.tools.extension.list_mcp_resources.constants import MOST_RESOURCES
from retinue.tools.mcp.ports import McpResource
from retinue.tools.text import counted, for_model, one_line


class ListMcpResourcesInput(ToolInput):
    server: str | None = Field(None, description="Only the resources of this server")


class ListMcpResourcesOutput(ToolData):
    resources: tuple[McpResource, ...] = ()
    total: int = 0


class ListMcpResources(Tool[ListMcpResourcesInput, ListMcpResourcesOutput]):
    name = "ListMcpResources"
    aliases = ("ListMcpResourcesTool",)
    group = "extension"
    needs = ("mcp",)
    search_hint = "what MCP servers offer to read: documents, records, data"
    should_defer = True
    needs_lease = False
    idempotent = True

    def description(self) -> str:
        return "Lists the resources that MCP servers offer for reading"

    def traits(self, args: ListMcpResourcesInput) -> Traits:
        return READS

    def subject(self, args: ListMcpResourcesInput, ctx: ToolContext) -> Subject:
        return NameSubject(args.server or "")

    def title(self, args: ListMcpResourcesInput) -> str:
        return f"List resources of {one_line(args.server, 60) if args.server else 'MCP servers'}"

    async def check_permissions(self, args: ListMcpResourcesInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it only reads what a server of this run offers", "tool")

    async def call(
        self, args: ListMcpResourcesInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ListMcpResourcesOutput]:
        if ctx.mcp is None:
            raise ToolError("There are no MCP servers here.")
        found = await ctx.mcp.resources(args.server)
        return ToolResult(ListMcpResourcesOutput(resources=found[:MOST_RESOURCES], total=len(found)))

    def to_content(self, data: ListMcpResourcesOutput) -> str:
        lines = [line(resource) for resource in data.resources]
        if data.total > len(data.resources):
            lines.append(
                f"({counted(data.total, 'resource')}, the first {len(data.resources)} are shown: name a server.)"
            )
        return "\n".join(lines) or "No server offers any resource."


def line(resource: McpResource) -> str:
    kind = f" ({one_line(resource.mime_type, 60)})" if resource.mime_type else ""
    about = f": {one_line(resource.description)}" if resource.description else ""
    name = one_line(resource.name, 80)
    return for_model(f"{one_line(resource.server, 60)} {one_line(resource.uri, 500)} {name}{kind}{about}")
