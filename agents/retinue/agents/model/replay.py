"""A model that answers with what an earlier run's model answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from retinue.agents.model.messages import AssistantBlock, AssistantMessage, TextBlock, ToolUseBlock, Usage
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    MessageStarted,
    ModelRequest,
    SearchFound,
    StopReason,
    StreamEvent,
    TextDelta,
    digest_of,
)
from retinue.tools.ports import SearchHit


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One message of the model. `asked_with` counts the messages of the request it answered, None when unknown.

    `stop_reason` is None for a message that broke after a call had started; it is given whole.
    """

    blocks: tuple[AssistantBlock, ...]
    usage: Usage = field(default_factory=Usage)
    stop_reason: StopReason | None = None
    asked_with: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedSide:
    """An answer to a question beside the conversation; `digest` tells which."""

    digest: str
    text: str
    usage: Usage = field(default_factory=Usage)
    hits: tuple[SearchHit, ...] = ()


class Recording(Protocol):
    """An earlier run, as its ledger has it."""

    def answers(self, agent: str) -> Sequence[RecordedAnswer]:
        """In the order of the conversation; empty for an agent that was not there."""
        ...

    def sides(self, agent: str) -> Sequence[RecordedSide]:
        """What was answered beside it, in order."""
        ...


class ReplayModel:
    """The answer is the one that stood at this place of the recorded conversation; only the length is compared."""

    def __init__(self, recording: Recording, where: str = "the recording") -> None:
        self._recording = recording
        self._where = where
        self._given: dict[tuple[str, str], set[int]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """As `ModelPort.stream`."""
        if request.side:
            for event in self._beside(request):
                yield event
            return
        answers = self._recording.answers(request.agent)
        place = sum(isinstance(message, AssistantMessage) for message in request.messages)
        found = self._found(request, answers, place)
        if isinstance(found, Broken):
            yield found
            return
        yield MessageStarted(message_id=f"msg_{request.agent}_{place + 1}", model=request.model)
        for index, block in enumerate(found.blocks):
            if isinstance(block, TextBlock):
                yield TextDelta(text=block.text)
            yield BlockDone(index=index, block=block)
            await asyncio.sleep(0)  # lets the call of this block start, as with a real stream
        calls = any(isinstance(block, ToolUseBlock) for block in found.blocks)
        yield MessageDone(stop_reason=found.stop_reason or ("tool_use" if calls else "end_turn"), usage=found.usage)

    def _beside(self, request: ModelRequest) -> Iterator[StreamEvent]:
        """The answer to the same question, else the first that was not given yet: a page may have changed since."""
        given = self._given.setdefault((request.run, request.agent), set())
        left = [(n, side) for n, side in enumerate(self._recording.sides(request.agent)) if n not in given]
        digest = digest_of(request)
        found = next((pair for pair in left if pair[1].digest == digest), left[0] if left else None)
        if found is None:
            who = f"{self._where}, agent {request.agent}"
            yield Broken(reason="expectation", message=f"{who}: no further answer beside the conversation was recorded")
            return
        number, side = found
        given.add(number)
        yield MessageStarted(message_id=f"msg_{request.agent}_side_{number + 1}", model=request.model)
        if side.hits:
            yield SearchFound(hits=side.hits)
        if side.text:
            yield BlockDone(index=0, block=TextBlock(text=side.text))
        yield MessageDone(stop_reason="end_turn", usage=side.usage)

    def _found(self, request: ModelRequest, answers: Sequence[RecordedAnswer], place: int) -> RecordedAnswer | Broken:
        who = f"{self._where}, agent {request.agent}"
        if not answers:
            return Broken(reason="not_found", message=f"{who}: not in this recording")
        if place >= len(answers):
            return Broken(
                reason="expectation",
                message=f"{who}: the recording has {len(answers)} answers, and the conversation asks for one more",
            )
        answer = answers[place]
        if answer.asked_with not in (None, len(request.messages)):
            return Broken(
                reason="expectation",
                message=f"{who}: answer {place + 1} was recorded after {answer.asked_with} messages, "
                f"and this request has {len(request.messages)}: the run has taken another course",
            )
        return answer
