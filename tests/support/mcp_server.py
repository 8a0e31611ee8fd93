"""An MCP server for tests, on its standard streams. Run as a program."""

from __future__ import annotations

import os

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image
from mcp_types import ToolAnnotations

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003"
    "010100c9fe92ef0000000049454e44ae426082"
)


def well() -> None:
    server = MCPServer("tracker", log_level="ERROR")
    _answers(server)
    _behaves(server)
    _offers(server)
    server.run("stdio")


def _answers(server: MCPServer) -> None:

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def find_issue(words: str, limit: int = 5) -> str:
        """Finds issues by words."""
        return f"{limit} issues about {words}; cwd {os.getcwd()}"

    @server.tool()
    def close_issue(number: int) -> str:
        """Closes an issue."""
        return f"closed {number}"

    @server.tool()
    def environment() -> str:
        """Names of variables."""
        return " ".join(sorted(os.environ))

    @server.tool()
    def draw() -> Image:
        """A picture."""
        return Image(data=PIXEL, format="png")


def _behaves(server: MCPServer) -> None:
    @server.tool()
    def fail() -> str:
        """Fails."""
        raise ValueError("a secret")

    @server.tool()
    def end() -> str:
        """Ends the server in the middle of a call."""
        os._exit(3)

    @server.tool()
    async def slow(ctx: Context, marker: str) -> str:
        """Reports progress, then waits; says in a file that it was called off."""
        await ctx.report_progress(1, 3, "begun")
        try:
            await anyio.sleep(60)
        except BaseException:
            with open(marker, "w", encoding="utf-8") as file:
                file.write("called off")
            raise
        return "done"

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Gets one more tool."""

        @server.tool()
        def later() -> str:
            """Came late."""
            return "late"

        await ctx.session.send_tool_list_changed()
        return "grown"


def _offers(server: MCPServer) -> None:
    @server.resource("memo://first", mime_type="text/plain", description="The first memo")
    def memo() -> str:
        return "remember the milk"

    @server.resource("memo://blob", mime_type="application/pdf")
    def blob() -> bytes:
        return b"%PDF-1.4 not really"


if __name__ == "__main__":
    well()
