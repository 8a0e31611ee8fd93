"""The one protocol to every model: send a request, get typed events. Which model it is, nobody downstream knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal, Protocol

from pydantic import Field

from retinue.agents.model.messages import AssistantBlock, Message, ToolSpec, Usage, Wire

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
]


class ModelRequest(Wire):
    """One request of one agent. `model` is `PROVIDER:NAME`; `agent` is the agent's name, `attempt` counts from 0.

    `system` and `tools` are the stable prefix; the cache mark goes after them and on the last message.
    """

    run: str
    agent: str
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8_000
    attempt: int = 0


class MessageStarted(Wire):
    kind: Literal["message_started"] = "message_started"
    message_id: str
    model: str


class TextDelta(Wire):
    """For people who watch only; the block comes whole afterwards."""

    kind: Literal["text_delta"] = "text_delta"
    text: str


class BlockDone(Wire):
    """A block is complete; a tool call in it may start now."""

    kind: Literal["block_done"] = "block_done"
    index: int
    block: AssistantBlock


class MessageDone(Wire):
    kind: Literal["message_done"] = "message_done"
    stop_reason: StopReason
    usage: Usage


BreakKind = Literal[
    "rate_limited",  # 429
    "overloaded",  # 529, also in mid-stream
    "server_error",  # 5xx
    "dropped",  # connection lost or idle too long
    "truncated",  # closed cleanly before the end of the message
    "invalid_request",  # 400, 413, 422: the same request would fail again
    "authentication",  # 401, 403, no credential
    "not_found",  # no such model, script or recording
    "expectation",  # a script's `expect` did not match what came
]
RETRYABLE: frozenset[BreakKind] = frozenset({"rate_limited", "overloaded", "server_error", "dropped", "truncated"})


class Broken(Wire):
    """The stream ended without a whole message. `retry_after_s` is the server's wish, None when it has none."""

    kind: Literal["broken"] = "broken"
    reason: BreakKind
    message: str
    retry_after_s: float | None = None


StreamEvent = Annotated[MessageStarted | TextDelta | BlockDone | MessageDone | Broken, Field(discriminator="kind")]


class ModelPort(Protocol):
    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Yield events up to exactly one `MessageDone` or `Broken`, which is the last. Raises nothing but cancellation.

        No retries inside: the caller decides, because it alone knows which calls have started.
        """
        ...
