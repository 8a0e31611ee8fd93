"""The way of an agent to the MCP servers of its run, which the gateway's process holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from retinue.orchestrator.actors.cluster import find
from retinue.orchestrator.actors.options import GATEWAY
from retinue.orchestrator.actors.wire import ask, pack, unpack
from retinue.orchestrator.runtime.mcp_service import (
    CallAsk,
    McpContents,
    McpEvent,
    McpResources,
    ReadAsk,
    ResourcesAsk,
    or_raise,
)
from retinue.orchestrator.runtime.port import Unreachable
from retinue.tools.errors import ToolError
from retinue.tools.mcp.ports import McpAnswer, McpBlock, McpListing, McpRequest, McpResource

MOST_WAIT_S = 120.0
_NUMBERS = itertools.count(1)


class McpLink:
    """Implements `McpPort` over the gateway's actor. When that dies during a call, the outcome is unknown."""

    def __init__(self, run: str, agent: str) -> None:
        self._run = run
        self._agent = agent

    async def listing(self, wait_s: float = 0.0) -> McpListing:
        return unpack(McpListing, await ask(self._gateway().mcp_listing.remote(wait_s), MOST_WAIT_S))

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        gateway = self._gateway()
        call_id = f"{self._agent}/{next(_NUMBERS)}"
        asked = pack(CallAsk(id=call_id, request=request))
        over = False
        try:
            async for ref in gateway.mcp_call.options(num_returns="streaming").remote(asked):
                event = unpack(McpEvent, await ref)
                over = event.answer is not None or event.error is not None
                if event.progress is not None:
                    on_progress(event.progress)
                if event.error is not None:
                    raise ToolError(event.error)
                if event.answer is not None:
                    return event.answer
        except (RayActorError, RayTaskError) as error:
            over = True
            raise ToolError(f"The process that holds MCP servers was lost ({type(error).__name__}).") from None
        finally:
            if not over:
                gateway.mcp_call_off.remote(call_id)
        raise ToolError("The call of the MCP server ended without an answer; its outcome is unknown.")

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        asked = pack(ResourcesAsk(server=server))
        return or_raise(unpack(McpResources, await self._asked("mcp_resources", asked))).resources

    async def read(self, server: str, uri: str) -> tuple[McpBlock, ...]:
        asked = pack(ReadAsk(server=server, uri=uri))
        return or_raise(unpack(McpContents, await self._asked("mcp_read", asked))).blocks

    async def _asked(self, method: str, data: bytes) -> bytes:
        try:
            return await ask(getattr(self._gateway(), method).remote(data), MOST_WAIT_S)
        except Unreachable as error:
            raise ToolError(f"The process that holds MCP servers does not answer: {error}") from None

    def _gateway(self) -> Any:
        try:
            return find(GATEWAY, self._run)
        except Unreachable as error:
            raise ToolError(f"The process that holds MCP servers cannot be reached: {error}") from None
