"""Runs the calls of one assistant message while the model still speaks; the lane decides, this carries out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from types import TracebackType
from typing import Self, assert_never

from retinue.tools.base import ContextModifier, ToolContext
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallEnd, CallResult, Runner, ToolCall
from retinue.tools.execution.lane import (
    CAP,
    Aborted,
    Cancel,
    EffectBegun,
    Emit,
    Event,
    Finished,
    Lane,
    SettleExpired,
    Start,
    StreamEnded,
    Submitted,
    Withdrawn,
)

SETTLE_S = 10.0
"""How long a call that was told to stop may take to do so. Longer than the shell needs to kill a process tree."""


class StreamingExecutor:
    """One per assistant message.

    Every submitted call gets exactly one result, in the order of the calls, whatever happens. Leaving the context
    aborts what is left. `context` is the agent's context after the calls that have ended, for the next message.
    """

    def __init__(self, runner: Runner, context: ToolContext, *, cap: int = CAP, settle_s: float = SETTLE_S) -> None:
        self.context = context
        self._runner = runner
        self._settle_s = settle_s
        self._lane = Lane(cap)
        self._calls: dict[str, ToolCall] = {}
        self._tasks: dict[str, asyncio.Task[CallEnd | None]] = {}
        self._modifiers: dict[str, ContextModifier] = {}
        self._ready: deque[CallResult] = deque()
        self._news = asyncio.Event()
        self._settling: asyncio.TimerHandle | None = None

    # --- the producer's side ---

    def submit(self, call: ToolCall) -> None:
        """A block is complete: its call starts now if it may."""
        if call.id in self._calls:
            raise InvariantBroken(f"{call.id} submitted twice")
        traits = self._runner.traits_of(call)
        self._calls[call.id] = call
        self._handle(Submitted(call.id, call.name, traits))

    def end_of_stream(self) -> None:
        """The message is complete: no further call comes."""
        self._handle(StreamEnded())

    def abort(self, reason: str) -> None:
        """Call off what runs, waits, or is still to come. The stream stays open until `end_of_stream`."""
        self._handle(Aborted(reason))

    def withdraw(self) -> bool:
        """Take the message back, which ends its stream: only if the effect of none of its calls has begun."""
        if not self._lane.may_withdraw:
            return False
        self._handle(Withdrawn())
        return True

    # --- the consumer's side ---

    async def results(self) -> AsyncGenerator[CallResult]:
        """In the order of the calls, until the stream has ended and each call has had its result.

        A consumer that was interrupted goes on where it stopped by asking again.
        """
        while True:
            while self._ready:
                yield self._ready.popleft()
            if self._lane.finished:
                return
            self._news.clear()
            await self._news.wait()

    async def close(self, reason: str) -> tuple[CallResult, ...]:
        """End the stream, call off what is left, and return the results that nobody has taken yet."""
        self.end_of_stream()
        self.abort(reason)
        return tuple([result async for result in self.results()])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end_of_stream()
        self.abort("the agent stopped")
        while not self._lane.finished:
            self._news.clear()
            await self._news.wait()

    @property
    def stuck(self) -> frozenset[str]:
        """Calls that were told to stop, and have not."""
        return frozenset(self._tasks) if self._lane.idle else frozenset()

    # --- carrying out ---

    def _handle(self, event: Event) -> None:
        for effect in self._lane.handle(event):
            match effect:
                case Start(call):
                    self._start(call)
                case Cancel(call):
                    self._cancel(call)
                case Emit(result):
                    self._ready.append(result)
                case _:
                    assert_never(effect)
        if self._lane.idle and self._settling is not None:
            self._settling.cancel()
            self._settling = None
        self._news.set()

    def _start(self, call: str) -> None:
        if not self._tasks:
            self._apply_modifiers()
        task = asyncio.create_task(self._contained(call, self.context), name=f"call {call}")
        self._tasks[call] = task
        task.add_done_callback(lambda done: self._done(call, done))

    async def _contained(self, call: str, context: ToolContext) -> CallEnd | None:
        """None for a runner that broke its promise: the call ends without a result of its own."""
        try:
            return await self._runner.run(self._calls[call], context, lambda: self._begin(call))
        except Exception:
            return None

    def _cancel(self, call: str) -> None:
        self._tasks[call].cancel()
        if self._settling is None:
            loop = asyncio.get_running_loop()
            self._settling = loop.call_later(self._settle_s, self._handle, SettleExpired())

    def _begin(self, call: str) -> None:
        if self._lane.closed:
            raise asyncio.CancelledError  # it slept through its cancellation: at least its effect does not begin
        self._handle(EffectBegun(call))

    def _done(self, call: str, task: asyncio.Task[CallEnd | None]) -> None:
        del self._tasks[call]
        end = None if task.cancelled() else task.result()
        if end is not None and end.modifier is not None:
            self._modifiers[call] = end.modifier
        self._handle(Finished(call, end.result if end else None))
        if not self._tasks:
            self._apply_modifiers()

    def _apply_modifiers(self) -> None:
        """In the order of the calls, when their batch is over. One that fails changes nothing."""
        for call in [call for call in self._calls if call in self._modifiers]:
            modifier = self._modifiers.pop(call)
            try:
                self.context = modifier(self.context)
            except Exception:
                continue


async def run_all(
    runner: Runner, context: ToolContext, calls: Iterable[ToolCall], *, cap: int = CAP
) -> tuple[tuple[CallResult, ...], ToolContext]:
    """The static path: all calls are known. The results in order, and the context after them."""
    async with StreamingExecutor(runner, context, cap=cap) as executor:
        for call in calls:
            executor.submit(call)
        executor.end_of_stream()
        results = tuple([result async for result in executor.results()])
    return results, executor.context
