"""The MCP servers of a run: one task holds each connection, opens it again when it breaks, and knows what it offers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

import anyio

from retinue.orchestrator.mcp.connection import Connection, Program, ServerFailed, connected
from retinue.orchestrator.mcp.servers import CONNECT_S, STEADY_S, StdioServer, pause_before
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.mcp.ports import (
    McpAnswer,
    McpBlock,
    McpListing,
    McpRequest,
    McpResource,
    McpServerState,
    McpStateName,
    McpToolFacts,
)
from retinue.tools.text import one_line

ProgramOf = Callable[[StdioServer], Awaitable[Program]]
"""What has to be started for a server. Raises RetinueError when nothing can."""


@dataclass(slots=True)
class _Kept:
    """One server. `tools` are those of its last connection: they stay when it breaks."""

    server: StdioServer
    state: McpServerState
    tools: tuple[McpToolFacts, ...] = ()
    connection: Connection | None = None
    task: asyncio.Task[None] | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: asyncio.Event = field(default_factory=asyncio.Event)


class McpHost:
    """Implements `McpPort` in the process that it is made in. Servers start at the first question about them.

    A server that fails is said to have failed, and is tried again: at once a few times with growing pauses, and after
    that when somebody calls one of its tools.
    """

    def __init__(
        self,
        servers: Iterable[StdioServer],
        program_of: ProgramOf,
        *,
        connect_s: float = CONNECT_S,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._program_of = program_of
        self._connect_s = connect_s
        self._sleep = sleep
        self._version = 0
        self._changed = asyncio.Event()
        self._kept = {
            server.name: _Kept(server, McpServerState(name=server.name, state="connecting")) for server in servers
        }

    # --- McpPort ---

    async def listing(self, wait_s: float = 0.0) -> McpListing:
        self._begin()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while any(kept.state.state == "connecting" for kept in self._kept.values()):
                    await self._changed.wait()
        return McpListing(
            version=self._version,
            servers=tuple(kept.state for kept in self._kept.values()),
            tools=tuple(facts for kept in self._kept.values() for facts in kept.tools),
        )

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        connection = await self._open(request.server)
        return await connection.call(request, on_progress)

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Of all servers: what one cannot say does not keep what the others can."""
        if server is not None:
            return await (await self._open(server)).resources()
        self._begin()
        open_ones = [k.connection for k in self._kept.values() if k.connection is not None and k.state.has_resources]
        answers = await asyncio.gather(*(each.resources() for each in open_ones), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, RetinueError):
                raise answer
        return tuple(found for answer in answers if not isinstance(answer, BaseException) for found in answer)

    async def read(self, server: str, uri: str) -> tuple[McpBlock, ...]:
        return await (await self._open(server)).read(uri)

    async def aclose(self) -> None:
        """End all servers, and wait until they are gone."""
        tasks = [kept.task for kept in self._kept.values() if kept.task is not None]
        for kept in self._kept.values():
            kept.scope.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- connections ---

    def _begin(self) -> None:
        for kept in self._kept.values():
            if kept.task is None:
                kept.task = asyncio.create_task(self._hold(kept), name=f"mcp server {kept.server.name}")

    async def _open(self, name: str) -> Connection:
        """The connection, as soon as there is one. ToolError: there is no such server, or it failed."""
        kept = self._kept.get(name)
        if kept is None:
            known = ", ".join(one_line(each, 60) for each in self._kept) or "none"
            raise ToolError(f"There is no MCP server {one_line(name, 60)} here. There are: {known}.")
        self._begin()
        if kept.state.state == "failed":
            kept.wanted.set()
            self._say(kept, "connecting")
        while kept.connection is None or kept.connection.closed.is_set():
            if kept.state.state == "failed":
                raise ToolError(f"The MCP server {one_line(name, 60)} cannot be reached: {kept.state.detail}")
            await self._changed.wait()
        return kept.connection

    async def _hold(self, kept: _Kept) -> None:
        with kept.scope:
            await self._again_and_again(kept)

    async def _again_and_again(self, kept: _Kept) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            why = await self._one_connection(kept)
            if asyncio.get_running_loop().time() - began >= STEADY_S:
                failures = 0
            failures += 1
            pause = pause_before(failures)
            if pause is not None:
                self._say(kept, "connecting", why)
                await self._sleep(pause)
                continue
            kept.wanted.clear()
            self._say(kept, "failed", why)
            await kept.wanted.wait()
            failures = 0

    async def _one_connection(self, kept: _Kept) -> str:
        """From its start to its end; why it ended."""
        try:
            program = await self._program_of(kept.server)
            async with connected(kept.server, program, kept.stale.set, self._connect_s) as connection:
                kept.tools = await connection.tools()
                kept.connection = connection
                self._say(kept, "connected", has_resources=connection.has_resources)
                await self._serve(kept, connection)
        except RetinueError as error:
            return str(error)
        except Exception as error:
            # The client library raises many things when a connection breaks; none of them may end this server for good.
            return f"its connection broke ({type(error).__name__})"
        finally:
            kept.connection = None
        return "it ended"

    async def _serve(self, kept: _Kept, connection: Connection) -> None:
        """Until the server hangs up; its tools are listed anew whenever it says that they changed."""
        while not connection.closed.is_set():
            kept.stale.clear()
            waits = [asyncio.ensure_future(event.wait()) for event in (kept.stale, connection.closed)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if connection.closed.is_set():
                return
            with contextlib.suppress(ServerFailed):
                kept.tools = await connection.tools()
                self._say(kept, "connected", has_resources=connection.has_resources)

    def _say(self, kept: _Kept, state: McpStateName, detail: str = "", *, has_resources: bool = False) -> None:
        kept.state = McpServerState(name=kept.server.name, state=state, detail=detail, has_resources=has_resources)
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()
