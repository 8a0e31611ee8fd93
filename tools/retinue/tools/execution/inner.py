"""Calls that a tool makes on behalf of the code that it runs: each goes through the pipeline like the model's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from retinue.tools.base import AnyTool, ContextModifier, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.execution.calls import CallEnd, CallResult, JournalPort, ToolCall
from retinue.tools.execution.lane import Finished, Lane, Start, Submitted
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.synthetic import Cause, Closing, synthetic
from retinue.tools.files.state import FileState, Seen
from retinue.tools.permissions.chain import PermissionPolicy
from retinue.tools.permissions.code import CodeRights, code_rights
from retinue.tools.registry.pool import ToolPool
from retinue.tools.registry.table import WRAPPED_BY_REPL

MOST_CALLS = 200
"""Of one outer call."""
SEPARATOR = "."
"""Between the id of the outer call and the number of the inner one. No call of a model has it in its id."""

_CALLED_OFF = Closing(Cause.ABORTED, "the code that made it has ended, or gave it up")

RUNS_CODE = "REPL"
_ASKS_OTHERS = frozenset({"Agent"})
"""Code cannot do by itself what these do."""

Ended = Callable[[CallResult], Awaitable[None]]


class InnerJournal(JournalPort, Protocol):
    """Keeps what code calls, beside the call that runs the code."""

    async def ended(self, result: CallResult) -> None:
        """Of a call whose effect had begun, or of one that was refused."""
        ...


def outer_of(call_id: str) -> str:
    """The call that an inner call belongs to."""
    return call_id.rpartition(SEPARATOR)[0]


def wrapped(tools: Sequence[AnyTool]) -> tuple[AnyTool, ...]:
    """Those that code may call, as far as its agent may."""
    return tuple(tool for tool in tools if tool.name in WRAPPED_BY_REPL)


def calls_of_code(
    tools: Sequence[AnyTool], pool: ToolPool, pipeline: Pipeline, policy: PermissionPolicy, journal: InnerJournal
) -> InnerCalls | None:
    """None where no tool runs code.

    tools     all that come with the product, whether or not this agent has them
    pool      what its code may call
    pipeline  of the agent's own calls
    """
    runs = next((tool for tool in tools if tool.name == RUNS_CODE), None)
    if runs is None:
        return None
    stands_for = tuple(tool for tool in wrapped(tools) if tool.name not in _ASKS_OTHERS)
    has_shell = pool.find("Bash") is not None
    return InnerCalls(
        pool,
        replace(pipeline, pool=pool, journal=journal),
        journal.ended,
        lambda: code_rights(policy, runs, stands_for, has_shell=has_shell),
    )


@dataclass(frozen=True, slots=True)
class InnerCalls:
    """
    pool      the tools that may be called so
    pipeline  with this pool; its journal takes calls whose id has the outer call's in it
    ended     is told each result, before the code is
    rights    what rules and modes say of code that could do by itself what tools do
    """

    pool: ToolPool
    pipeline: Pipeline
    ended: Ended
    rights: Callable[[], CodeRights]
    most: int = MOST_CALLS

    def within(self, ctx: ToolContext) -> InnerScope:
        """For the one call that `ctx` belongs to."""
        return InnerScope(self, ctx)


class InnerScope:
    """The inner calls of one outer call: none outlives it. What may run side by side is as with the model's calls."""

    def __init__(self, calls: InnerCalls, ctx: ToolContext) -> None:
        self._calls = calls
        self._outer = ctx.call_id
        self._ctx = replace(ctx, files=_Unshown(ctx.files), code=None, lasting=None)
        self._lane = Lane()
        self._may_start: dict[str, asyncio.Event] = {}
        self._running: set[asyncio.Task[CallResult]] = set()
        self._modifiers: list[ContextModifier] = []
        self._dropped: set[str] = set()
        self._closed = False
        self.told: list[str] = []
        self.notes: list[str] = []

    @property
    def count(self) -> int:
        return len(self._may_start)

    def start(self, name: str, values: dict[str, JsonValue]) -> asyncio.Task[CallResult]:
        """ToolError when there were too many. The result says whether it is an error."""
        if self._closed:
            raise ToolError("The call of the REPL is over: nothing can be called any more.")
        if self.count >= self._calls.most:
            raise ToolError(f"This was one call too many: {self._calls.most} may be made within one call of the REPL.")
        call = ToolCall(id=f"{self._outer}{SEPARATOR}{self.count + 1}", name=name, input=values)
        self._may_start[call.id] = asyncio.Event()
        self._carry_out(Submitted(call.id, call.name, self._calls.pipeline.traits_of(call)))
        task = asyncio.create_task(self._run(call), name=f"inner call {call.id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        """Call off what still runs, and wait for its end."""
        self._closed = True
        cancelled = False
        while self._running:
            for task in self._running:
                task.cancel()
            try:
                await asyncio.wait(tuple(self._running))
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    def modifier(self) -> ContextModifier | None:
        """What the calls changed for those after them, in their order."""
        modifiers = tuple(self._modifiers)
        if not modifiers:
            return None

        def all_of_them(ctx: ToolContext) -> ToolContext:
            for each in modifiers:
                ctx = each(ctx)
            return ctx

        return all_of_them

    async def _run(self, call: ToolCall) -> CallResult:
        """Whose effect began has an end that is recorded, also when it was called off."""
        begun: list[str] = []
        try:
            await self._may_start[call.id].wait()
            end = await self._calls.pipeline.run(call, self._ctx, lambda: begun.append(call.id))
            await self._calls.ended(end.result)
            self._take(end)
            return end.result
        except asyncio.CancelledError:
            if begun:
                await self._calls.ended(synthetic(call.id, call.name, _CALLED_OFF, began=True))
            raise
        finally:
            if self._may_start[call.id].is_set():
                self._carry_out(Finished(call.id, None))
            else:
                self._dropped.add(call.id)

    def _take(self, end: CallEnd) -> None:
        self.told += end.result.told
        self.notes += end.result.new_messages
        if end.modifier is not None:
            self._modifiers.append(end.modifier)
            self._ctx = end.modifier(self._ctx)

    def _carry_out(self, event: Submitted | Finished) -> None:
        """A call that was given up before its turn came is over when it comes."""
        for effect in self._lane.handle(event):
            if isinstance(effect, Start):
                self._may_start[effect.call].set()
                if effect.call in self._dropped:
                    self._carry_out(Finished(effect.call, None))


class _Unshown(FileState):
    """The agent's read-state for code: what code reads, the model was not shown, and the other way round."""

    def __init__(self, files: FileState) -> None:
        super().__init__()
        self._files = files

    def get(self, path: Path) -> Seen | None:
        seen = self._files.get(path)
        return seen.model_copy(update={"shown": ""}) if seen is not None else None

    def put(self, path: Path, seen: Seen) -> None:
        self._files.put(path, seen.model_copy(update={"shown": ""}))

    def take_changes(self) -> dict[str, Seen]:
        return self._files.take_changes()

    def __iter__(self) -> Iterator[tuple[str, Seen]]:
        return iter(self._files)
