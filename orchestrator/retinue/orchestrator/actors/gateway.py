"""Ray shell of the gateway: one per run; the only process that imports a model client, and that holds MCP servers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from retinue.agents.model.port import Broken, ModelRequest, StreamEvent
from retinue.orchestrator.actors.cluster import find, spawn
from retinue.orchestrator.actors.options import GATEWAY, run_actor_options
from retinue.orchestrator.actors.wire import pack, unpack
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.gateway import EventBatch, GatewayService
from retinue.orchestrator.runtime.mcp_service import CallAsk, McpService, ReadAsk, ResourcesAsk
from retinue.orchestrator.runtime.port import Unreachable


class GatewayActor:
    def __init__(self, run_dir: str) -> None:
        # Here, because agents' processes load this module for the link alone.
        from retinue.orchestrator.mcp.host import McpHost
        from retinue.orchestrator.runtime.mcp_programs import McpPrograms

        files = RunFiles.of(run_dir)
        self._service = GatewayService(files.open_model, time.monotonic)
        self._mcp = McpService(McpHost(files.plan.mcp, McpPrograms(files).of))

    async def stream(self, data: bytes) -> AsyncIterator[bytes]:
        async for batch in self._service.stream(unpack(ModelRequest, data)):
            yield pack(batch)

    async def mcp_listing(self, wait_s: float) -> bytes:
        return pack(await self._mcp.listing(wait_s))

    async def mcp_call(self, data: bytes) -> AsyncIterator[bytes]:
        async for event in self._mcp.call(unpack(CallAsk, data)):
            yield pack(event)

    async def mcp_call_off(self, call_id: str) -> None:
        self._mcp.call_off(call_id)

    async def mcp_resources(self, data: bytes) -> bytes:
        return pack(await self._mcp.resources(unpack(ResourcesAsk, data)))

    async def mcp_read(self, data: bytes) -> bytes:
        return pack(await self._mcp.read(unpack(ReadAsk, data)))


def spawn_gateway(run: str, run_dir: str) -> Any:
    return spawn(GatewayActor, run_actor_options(GATEWAY, run), run_dir)


class GatewayLink:
    """Implements `ModelPort` over the actor. Its death in mid-stream is a dropped connection, like any other."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._actor: Any = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        try:
            self._actor = self._actor or find(GATEWAY, self._run)
            answer = self._actor.stream.options(num_returns="streaming").remote(pack(request))
            async for ref in answer:
                for event in unpack(EventBatch, await ref).events:
                    yield event
        except (RayActorError, RayTaskError, Unreachable) as error:
            self._actor = None
            yield Broken(reason="dropped", message=f"the gateway was lost: {type(error).__name__}")
