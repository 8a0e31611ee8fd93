"""ReadMcpResource: one resource of an MCP server."""

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
from retinue.tools.mcp.results import Part, mapped, text_of
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread


class ReadMcpResourceInput(ToolInput):
    server: str = Field(min_length=1, description="The server that has the resource")
    uri: str = Field(min_length=1, max_length=8_192, description="The resource's URI")


class ReadMcpResourceOutput(ToolData):
    contents: tuple[Part, ...] = ()


class ReadMcpResource(Tool[ReadMcpResourceInput, ReadMcpResourceOutput]):
    name = "ReadMcpResource"
    aliases = ("ReadMcpResourceTool",)
    group = "extension"
    needs = ("mcp",)
    search_hint = "read a resource of an MCP server by its URI"
    should_defer = True
    needs_lease = False
    idempotent = True

    def description(self) -> str:
        return "Reads one resource of an MCP server"

    def traits(self, args: ReadMcpResourceInput) -> Traits:
        return READS

    def subject(self, args: ReadMcpResourceInput, ctx: ToolContext) -> Subject:
        return NameSubject(args.server)

    def title(self, args: ReadMcpResourceInput) -> str:
        return f"Read {one_line(args.uri, 120)} of {one_line(args.server, 60)}"

    async def check_permissions(self, args: ReadMcpResourceInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it only reads what a server of this run offers", "tool")

    async def call(
        self, args: ReadMcpResourceInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ReadMcpResourceOutput]:
        if ctx.mcp is None:
            raise ToolError("There are no MCP servers here.")
        blocks = await ctx.mcp.read(args.server, args.uri)
        result = await in_thread(mapped, blocks, ctx.results_dir)
        return ToolResult(ReadMcpResourceOutput(contents=tuple(result.parts)), attachments=tuple(result.attachments))

    def to_content(self, data: ReadMcpResourceOutput) -> str:
        return text_of(data.contents) or "(The resource is empty.)"
