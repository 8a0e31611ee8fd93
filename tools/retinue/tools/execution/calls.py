"""The values that go into the pipeline and come out of it, and what the pipeline asks of its surroundings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, JsonValue

from retinue.tools.base import AnyTool, ContextModifier, Decision, Question, ToolContext, ToolInput, Traits
from retinue.tools.files.state import Seen


class ToolCall(BaseModel):
    """One call as the model asked for it. `input` is unvalidated; `malformed` holds text that was not even JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    input: dict[str, JsonValue] = {}
    malformed: str | None = None


class Media(BaseModel):
    """An image or document of a result: its bytes lie in a file of the run, and count only with this digest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    media_type: str
    path: str
    digest: str
    size: int
    tokens: int


class CallResult(BaseModel):
    """What the model is told about one call, and what the ledger keeps of it.

    ran          the effect was started (a denied, invalid or withdrawn call did not run)
    error_class  stable name for telemetry, without paths or code; empty when all went well
    question     what would have been asked about a denied call, had somebody been there
    fails_group  this failure aborts the sibling group
    title        one plain line for people who watch
    duration_s   from the call to its result, waiting included
    effect_s     from the record of its start to its end: all of it under the lease
    seen         files whose read-state changed
    told         background tasks whose end it tells
    loaded       deferred tools whose definitions the model sees from here on
    observed     the input as observers see it, where that is not what the model wrote
    data         what the tool found, for those who look on: texts in it are cut, None where there is none or too much
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_id: str
    name: str
    content: str
    is_error: bool = False
    ran: bool = False
    denied: bool = False
    question: Question | None = None
    fails_group: bool = False
    error_class: str = ""
    title: str = ""
    duration_s: float = 0.0
    effect_s: float = 0.0
    spilled_to: str | None = None
    media: tuple[Media, ...] = ()
    new_messages: tuple[str, ...] = ()
    seen: dict[str, Seen] = {}
    told: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    observed: dict[str, JsonValue] | None = None
    data: dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run one call in one workspace. `fds` are the locks that prove it to the kernel."""

    fds: tuple[int, ...] = ()


class LeasePort(Protocol):
    def hold(self, call_id: str, *, exclusive: bool) -> AbstractAsyncContextManager[Lease]:
        """Wait for the lease of this agent's workspace, hold it for the block. First come, first served."""
        ...


class PermissionPort(Protocol):
    async def decide(
        self,
        tool: AnyTool,
        args: ToolInput,
        ctx: ToolContext,
        *,
        forced_ask: str | None,
        vouched: Decision | None = None,
        classifier: Awaitable[Decision | None] | None = None,
    ) -> Decision:
        """The permission chain. Only `allow` and `deny` come back: what had to ask has been asked, or denied.

        forced_ask  why validation or a hook wants it asked
        vouched     the allow of a hook: it stands where otherwise somebody would be asked, and beats no rule
        classifier  already at work; to be awaited only where otherwise somebody would be asked
        """
        ...


class JournalPort(Protocol):
    async def started(self, call: ToolCall, traits: Traits) -> None:
        """Record that the effect is about to begin; durable on return when the call is not read-only."""
        ...


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How one call ended. `modifier` is what it changes for the calls after its batch; it crosses no process."""

    result: CallResult
    modifier: ContextModifier | None = None


class Runner(Protocol):
    """What the executor drives: the pipeline, in production."""

    def traits_of(self, call: ToolCall) -> Traits:
        """Input that does not parse is treated as the worst case."""
        ...

    async def run(self, call: ToolCall, ctx: ToolContext, on_effect: Callable[[], None]) -> CallEnd:
        """Never raises but for cancellation; every failure is a result.

        `on_effect` is called once, just before the effect may begin; when it raises, the effect does not begin.
        """
        ...
