"""One connection to an MCP server, from its start to its end. The client library is loaded when it opens."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, TypeVar, cast

import anyio

from retinue.orchestrator.mcp.servers import CONNECT_S, StdioServer
from retinue.orchestrator.mcp.translate import answer_of, contents_of, facts_of, resource_of
from retinue.tools.errors import ToolError
from retinue.tools.mcp.ports import McpAnswer, McpBlock, McpRequest, McpResource, McpToolFacts
from retinue.tools.text import one_line, printable

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.shared._stream_protocols import ReadStream
    from mcp.shared.message import SessionMessage

T = TypeVar("T")
MOST_PAGES = 100
MOST_TOOLS = 2_000
ASK_S = 60.0
"""How long a list or a resource may take."""
_TAIL_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class Program:
    """What is started: the whole command, sandbox and guard included. The environment is exactly this one."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path


class ServerFailed(ToolError):
    """A server could not be started, does not speak the protocol, or is gone; the message says which and why."""


class Connection:
    """`closed` is set when the server's program has ended or hung up."""

    def __init__(self, server: StdioServer, client: Client, closed: asyncio.Event) -> None:
        self._server = server
        self._client = client
        self.closed = closed

    @property
    def has_resources(self) -> bool:
        return self._client.server_capabilities.resources is not None

    async def tools(self) -> tuple[McpToolFacts, ...]:
        found: list[McpToolFacts] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            at = cursor
            page = await self._asked(lambda at=at: self._client.list_tools(cursor=at), ASK_S)
            found += [facts_of(self._server, tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_TOOLS:
                break
        return tuple(found[:MOST_TOOLS])

    async def resources(self) -> tuple[McpResource, ...]:
        found: list[McpResource] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            at = cursor
            page = await self._asked(lambda at=at: self._client.list_resources(cursor=at), ASK_S)
            found += [resource_of(self._server.name, resource) for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        return tuple(found)

    async def read(self, uri: str) -> tuple[McpBlock, ...]:
        result = await self._asked(lambda: self._client.read_resource(uri), ASK_S)
        return contents_of(result.contents)

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        async def told(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            on_progress(one_line(f"{share} {message}" if message else share))

        limit = request.timeout_s or self._server.timeout_s
        result = await self._asked(
            lambda: self._client.call_tool(request.tool, dict(request.arguments), progress_callback=told), limit
        )
        return answer_of(result)

    async def _asked(self, ask: Callable[[], Awaitable[T]], limit_s: float) -> T:
        """The answer, within the limit, unless the server hangs up first. Cancelling calls it off at the server."""
        from mcp import MCPError

        work = asyncio.ensure_future(ask())
        gone = asyncio.ensure_future(self.closed.wait())
        try:
            await asyncio.wait((work, gone), timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
        except MCPError as error:
            if self.closed.is_set():
                raise self._gone() from None
            raise ToolError(f"The MCP server {self._name} refused: {one_line(str(error), 500)}") from None
        except ValueError as error:  # pydantic's, too: the server broke the protocol
            why = one_line(str(error), 300)
            raise ToolError(f"The MCP server {self._name} sent what is no answer: {why}") from None
        finally:
            gone.cancel()
            work.cancel()
        if self.closed.is_set():
            raise self._gone()
        raise ToolError(f"The MCP server {self._name} did not answer within {limit_s:g} s; the call was called off.")

    def _gone(self) -> ServerFailed:
        return ServerFailed(f"The MCP server {self._name} ended during the call; the outcome is unknown.")

    @property
    def _name(self) -> str:
        return one_line(self._server.name, 60)


@asynccontextmanager
async def connected(
    server: StdioServer, program: Program, on_tools_changed: Callable[[], None], connect_s: float = CONNECT_S
) -> AsyncGenerator[Connection]:
    """Enter and leave it in one task. ServerFailed: it could not be started, or did not greet within `connect_s`."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp_types import ToolListChangedNotification

    # It logs each line of a server that is no message, with all that stands there.
    logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_tools_changed()

    closed = asyncio.Event()
    command, *args = program.argv
    parameters = StdioServerParameters(command=command, args=args, env=program.env, cwd=program.cwd)

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:

        @asynccontextmanager
        async def transport() -> AsyncGenerator[TransportStreams]:
            async with stdio_client(parameters, complaints) as (incoming, outgoing):
                yield _Watched(incoming, closed), outgoing

        # By handshake, not in the newest way: every server knows it, and can tell of changes of its tools in it.
        # Its way down holds against a cancelled scope. A cancelled task would leave the program behind.
        client = Client(transport(), mode="legacy", cache=None, message_handler=heard)
        opened = False
        try:
            with anyio.fail_after(connect_s) as limit:
                async with client:
                    limit.deadline = math.inf
                    opened = True
                    yield Connection(server, client, closed)
        except Exception as error:
            if opened:
                raise
            raise ServerFailed(_why(error, connect_s, complaints)) from None


class _Watched:
    """A server's messages, up to the end, which is told."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], closed: asyncio.Event) -> None:
        self._stream = stream
        self._closed = closed

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await self._stream.receive()
        except BaseException:
            self._closed.set()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await anext(self._stream)
        except BaseException:
            self._closed.set()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _why(error: BaseException, connect_s: float, complaints: TextIO) -> str:
    """In words, with the last line of what the server wrote as errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, TimeoutError):
        said = f"it did not greet within {connect_s:g} s"
    elif isinstance(error, FileNotFoundError):
        said = "there is no such program"
    else:
        said = f"it ended, or does not speak MCP ({type(error).__name__}: {one_line(str(error), 200)})"
    last = _last_line(complaints)
    return f"{said}; its last words: {last}" if last else said


def _last_line(complaints: TextIO) -> str:
    size = os.fstat(complaints.fileno()).st_size
    tail = os.pread(complaints.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    lines = printable(tail.decode("utf-8", "replace")).strip().splitlines()
    return one_line(lines[-1], 300) if lines else ""
