# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Ray shell of the gateway: one per run; the only process that imports a model client."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

import ray
from ray.exceptions import RayActorError, RayTaskError

from retinue.agents.model.port import Broken, ModelRequest, StreamEvent
from retinue.orchestrator.actors.options import GATEWAY, run_actor_options
from retinue.orchestrator.actors.wire import pack, unpack
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.gateway import EventBatch, GatewayService


class GatewayActor:
    def __init__(self, run_dir: str) -> None:
        self._service = GatewayService(RunFiles.of(run_dir).open_model, time.monotonic)

    async def stream(self, data: bytes) -> AsyncIterator[bytes]:
        async for batch in self._service.stream(unpack(ModelRequest, data)):
            yield pack(batch)


def spawn_gateway(run: str, run_dir: str):
    return ray.remote(GatewayActor).options(**run_actor_options(GATEWAY, run).as_dict()).remote(run_dir)


class GatewayLink:
    """Implements `ModelPort` over the actor. Its death in mid-stream is a dropped connection, like any other."""

    def __init__(self, find: Callable[[], object]) -> None:
        self._find = find
        self._actor: object | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        try:
            actor = self._actor = self._actor or self._find()
            answer = actor.stream.options(num_returns="streaming").remote(pack(request))  # pyright: ignore[reportAttributeAccessIssue]
            async for ref in answer:
                for event in unpack(EventBatch, await ref).events:
                    yield event
        except (RayActorError, RayTaskError, ValueError) as error:
            self._actor = None
            yield Broken(reason="dropped", message=f"the gateway was lost: {type(error).__name__}")
