"""A pipeline without a machine: tools that do as tests say, and surroundings that remember what they were asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from retinue.tools.base import (
    AnyTool,
    Decision,
    OnProgress,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.execution.calls import (
    CallEnd,
    CallResult,
    JournalPort,
    Lease,
    LeasePort,
    PermissionPort,
    ToolCall,
)
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.files.state import FileState
from retinue.tools.ports import RunningCommand, ShellOutcome, ShellRequest
from retinue.tools.registry.pool import assemble
from retinue.tools.results.store import ResultStore

SAFE = Traits(read_only=True, concurrency_safe=True)
UNSAFE = Traits()


class NoShell:
    async def start(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> RunningCommand:
        raise AssertionError("no shell in this test")

    async def run(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> ShellOutcome:
        raise AssertionError("no shell in this test")


def context(root: Path = Path("/w"), **changes: object) -> ToolContext:
    values: dict[str, object] = {"agent": "ada~1", "cwd": root, "root": root, "files": FileState(), "shell": NoShell()}
    return ToolContext(**{**values, **changes})  # type: ignore[arg-type]


class Words(ToolInput):
    text: str = ""
    count: int = 1


class Said(ToolData):
    text: str


class Silent(Tool[Words, Said]):
    """Says nothing about itself but what it must."""

    name = "Silent"

    def description(self) -> str:
        return "says what it is told"

    async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text=args.text))

    def to_content(self, data: Said) -> str:
        return data.text


Act = Callable[[Words, ToolContext, OnProgress], Awaitable[ToolResult[Said]]]


def tool(name: str, act: Act | None = None, traits: Traits = UNSAFE, **attributes: object) -> AnyTool:
    """A tool of that name; without an act it answers with its text."""

    class Made(Silent):
        def traits(self, args: Words) -> Traits:
            return traits

        async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
            return await act(args, ctx, on_progress) if act else await super().call(args, ctx, on_progress)

    for key, value in {"name": name, **attributes}.items():
        setattr(Made, key, value)
    return Made()


@dataclass
class Surroundings:
    """Permission, lease and journal in one; `log` has everything in the order in which it was asked."""

    log: list[str] = field(default_factory=list)
    decision: Decision = field(default_factory=lambda: Decision("allow"))
    forced: list[str | None] = field(default_factory=list)
    vouched: list[Decision | None] = field(default_factory=list)
    fail: dict[str, Exception] = field(default_factory=dict)
    fds: tuple[int, ...] = (7,)

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
        self.note("permission")
        self.forced.append(forced_ask)
        self.vouched.append(vouched)
        return self.decision

    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        self.note(f"lease {'exclusive' if exclusive else 'shared'}")
        yield Lease(self.fds)
        self.note("released")

    async def started(self, call: ToolCall, traits: Traits) -> None:
        self.note("journal")

    def note(self, what: str) -> None:
        self.log.append(what)
        if what in self.fail:
            raise self.fail[what]


class Around(PermissionPort, LeasePort, JournalPort, Protocol):
    """All three in one."""


def pipeline(*tools: AnyTool, around: Around | None = None, folder: Path = Path("/w/r"), **more: object) -> Pipeline:
    around = around or Surroundings()
    return Pipeline(assemble(tools), around, around, around, ResultStore(folder), **more)  # type: ignore[arg-type]


def call(name: str = "Silent", call_id: str = "c1", **values: object) -> ToolCall:
    return ToolCall.model_validate({"id": call_id, "name": name, "input": values})


async def run(line: Pipeline, asked: ToolCall, ctx: ToolContext | None = None) -> CallResult:
    return (await line.run(asked, ctx or context(), lambda: None)).result


@dataclass
class Scripted:
    """A runner whose calls end when a test says so. `ignores`: calls that sleep through their cancellation."""

    traits: dict[str, Traits] = field(default_factory=dict)
    ignores: frozenset[str] = frozenset()
    running: dict[str, asyncio.Future[CallEnd]] = field(default_factory=dict)
    contexts: dict[str, ToolContext] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    begins: bool = True

    def traits_of(self, call: ToolCall) -> Traits:
        return self.traits.get(call.id, SAFE)

    async def run(self, call: ToolCall, ctx: ToolContext, on_effect: Callable[[], None]) -> CallEnd:
        self.log.append(f"start {call.id}")
        self.contexts[call.id] = ctx
        if self.begins:
            on_effect()
        ending = self.running[call.id] = asyncio.get_running_loop().create_future()
        try:
            return await ending
        except asyncio.CancelledError:
            self.log.append(f"cancel {call.id}")
            if call.id in self.ignores:
                fresh = self.running[call.id] = asyncio.get_running_loop().create_future()
                return await fresh
            raise

    def end(self, call_id: str, end: CallEnd | None = None, *, fails: bool = False) -> None:
        self.running[call_id].set_result(end or CallEnd(result(call_id, fails=fails)))


def result(call_id: str, *, fails: bool = False, content: str = "ok") -> CallResult:
    return CallResult(call_id=call_id, name="T", content=content, is_error=fails, ran=True, fails_group=fails)


async def settle(rounds: int = 10) -> None:
    """Let everything that is ready run."""
    for _ in range(rounds):
        await asyncio.sleep(0)
