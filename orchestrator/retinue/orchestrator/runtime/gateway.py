"""The models of a run behind one door, without its actor: one port per reference, deltas of text gathered to 10 Hz."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from retinue.agents.model.messages import Wire
from retinue.agents.model.port import Broken, ModelPort, ModelRequest, StreamEvent, TextDelta
from retinue.tools.errors import EnvironmentProblem, SpecError

TEXT_EVERY_S = 0.1
"""Text is for people who watch; ten times a second is as often as they can read. Whole blocks go out at once."""

Opener = Callable[[str], ModelPort]


class EventBatch(Wire):
    events: tuple[StreamEvent, ...]


@dataclass(slots=True)
class GatewayService:
    open_model: Opener
    now: Callable[[], float]
    ports: dict[str, ModelPort] = field(default_factory=dict[str, ModelPort])
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def stream(self, request: ModelRequest) -> AsyncIterator[EventBatch]:
        """Everything that the model says, up to its last event. A model that cannot be opened is a broken stream."""
        try:
            port = await self._port(request.model)
        except (SpecError, EnvironmentProblem) as error:
            reason = "not_found" if isinstance(error, SpecError) else "authentication"
            yield EventBatch(events=(Broken(reason=reason, message=str(error)),))
            return
        text, sent_at = "", self.now()
        async for event in port.stream(request):
            if isinstance(event, TextDelta):
                text += event.text
                if self.now() - sent_at < TEXT_EVERY_S:
                    continue
                yield EventBatch(events=(TextDelta(text=text),))
            else:
                yield EventBatch(events=((TextDelta(text=text), event) if text else (event,)))
            text, sent_at = "", self.now()

    async def _port(self, ref: str) -> ModelPort:
        """Opening may import a large library or read a file, so it is done once, and in a thread."""
        async with self.opening:
            if ref not in self.ports:
                self.ports[ref] = await asyncio.to_thread(self.open_model, ref)
            return self.ports[ref]
