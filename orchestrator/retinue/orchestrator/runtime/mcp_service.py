"""The MCP servers of a run as its gateway serves them: values that cross processes, calls that can be called off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TypeVar

from retinue.agents.model.messages import Wire
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.mcp.ports import McpAnswer, McpBlock, McpListing, McpPort, McpRequest, McpResource


class CallAsk(Wire):
    """`id` names the call for as long as it runs."""

    id: str
    request: McpRequest


class ResourcesAsk(Wire):
    server: str | None = None


class ReadAsk(Wire):
    server: str
    uri: str


class McpEvent(Wire):
    """Progress, or the end of a call: an answer, or an error in words."""

    progress: str | None = None
    answer: McpAnswer | None = None
    error: str | None = None


class Replied(Wire):
    """`error` says in words why there is nothing."""

    error: str | None = None


class McpResources(Replied):
    resources: tuple[McpResource, ...] = ()


class McpContents(Replied):
    blocks: tuple[McpBlock, ...] = ()


R = TypeVar("R", bound=Replied)


def or_raise(reply: R) -> R:
    """ToolError with the words of the other process, where it had any."""
    if reply.error is not None:
        raise ToolError(reply.error)
    return reply


@dataclass(slots=True)
class McpService:
    port: McpPort
    running: dict[str, asyncio.Task[McpAnswer]] = field(default_factory=dict[str, "asyncio.Task[McpAnswer]"])

    async def listing(self, wait_s: float) -> McpListing:
        return await self.port.listing(wait_s)

    async def call(self, asked: CallAsk) -> AsyncIterator[McpEvent]:
        """Progress as it comes, and then the end. Who stops to listen has called the call off."""
        told: asyncio.Queue[str | None] = asyncio.Queue(100)

        def tell(text: str) -> None:
            if not told.full():
                told.put_nowait(text)

        work = asyncio.ensure_future(self.port.call(asked.request, tell))
        self.running[asked.id] = work
        work.add_done_callback(lambda _: told.put_nowait(None) if not told.full() else None)
        try:
            while not work.done() or not told.empty():
                text = await told.get()
                if text is not None:
                    yield McpEvent(progress=text)
            yield _end(work)
        finally:
            self.running.pop(asked.id, None)
            work.cancel()

    def call_off(self, call_id: str) -> None:
        if (work := self.running.get(call_id)) is not None:
            work.cancel()

    async def resources(self, asked: ResourcesAsk) -> McpResources:
        try:
            return McpResources(resources=await self.port.resources(asked.server))
        except RetinueError as error:
            return McpResources(error=str(error))

    async def read(self, asked: ReadAsk) -> McpContents:
        try:
            return McpContents(blocks=await self.port.read(asked.server, asked.uri))
        except RetinueError as error:
            return McpContents(error=str(error))


def _end(work: asyncio.Task[McpAnswer]) -> McpEvent:
    if work.cancelled():
        return McpEvent(error="The call of the MCP server was called off.")
    error = work.exception()
    if error is None:
        return McpEvent(answer=work.result())
    if isinstance(error, RetinueError):
        return McpEvent(error=str(error))
    return McpEvent(error=f"The call of the MCP server failed: {type(error).__name__}.")
