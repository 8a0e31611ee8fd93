"""Ray shell of the gateway: one per run; the only process that imports a model client."""

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
from retinue.orchestrator.runtime.port import Unreachable


class GatewayActor:
    def __init__(self, run_dir: str) -> None:
        self._service = GatewayService(RunFiles.of(run_dir).open_model, time.monotonic)

    async def stream(self, data: bytes) -> AsyncIterator[bytes]:
        async for batch in self._service.stream(unpack(ModelRequest, data)):
            yield pack(batch)


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
