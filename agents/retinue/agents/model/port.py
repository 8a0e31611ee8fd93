"""The one protocol to every model: send a request, get typed events. Which model it is, nobody downstream knows."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Annotated, Literal, Protocol

from pydantic import Field

from retinue.agents.model.messages import AssistantBlock, Message, TextBlock, ToolSpec, Usage, Wire
from retinue.tools.ports import SearchHit, SearchQuery

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

    `system` and `tools` are the stable prefix; the cache mark goes after them and on the last message. `side`: a single
    question beside the agent's conversation; with `search`, one that the provider's own web search shall answer.
    """

    run: str
    agent: str
    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 8_000
    attempt: int = 0
    side: bool = False
    search: SearchQuery | None = None


def prompt_of(request: ModelRequest) -> str:
    return "".join(
        block.text for message in request.messages for block in message.content if isinstance(block, TextBlock)
    )


def digest_of(request: ModelRequest) -> str:
    """Tells the same question again from another one."""
    text = f"{request.system}\0{prompt_of(request)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


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


class SearchFound(Wire):
    """What the provider's own search found, or why it `failed`, in the provider's words."""

    kind: Literal["search_found"] = "search_found"
    hits: tuple[SearchHit, ...] = ()
    failed: str = ""


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


StreamEvent = Annotated[
    MessageStarted | TextDelta | BlockDone | SearchFound | MessageDone | Broken, Field(discriminator="kind")
]


class ModelPort(Protocol):
    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Yield events up to exactly one `MessageDone` or `Broken`, which is the last. Raises nothing but cancellation.

        No retries inside: the caller decides, because it alone knows which calls have started.
        """
        ...
