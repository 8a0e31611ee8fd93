"""Writes an agent's records: into the ledger, then into its conversation, in one order for both.

While the disk is full the writer waits visibly and tries again; what it must precede (an unsafe call, an answer, the
next request) does not happen before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import takewhile
from typing import Any, TypeVar

from retinue.agents.history import Conversation, OpenStep
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.ports import LedgerPort
from retinue.agents.records import AgentRecord, MailStored, ToolFinished, ToolStarted
from retinue.tools.base import Traits
from retinue.tools.errors import EnvironmentProblem, InvariantBroken
from retinue.tools.execution.calls import ToolCall

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]
AGAIN_S = 5.0


class Journal:
    """Implements `JournalPort`. `on_blocked` is told what the writer waits for, and an empty text when that is over."""

    def __init__(
        self,
        ledger: LedgerPort,
        conversation: Conversation,
        on_blocked: Callable[[str], None],
        *,
        sleep: Sleep = asyncio.sleep,
        again_s: float = AGAIN_S,
    ) -> None:
        self.conversation = conversation
        self._ledger = ledger
        self._on_blocked = on_blocked
        self._sleep = sleep
        self._again_s = again_s
        self._order = asyncio.Lock()
        self._finished = asyncio.Event()
        self._waiting = 0

    async def write(self, *records: AgentRecord) -> None:
        """Readable when this returns, durable after the next `sync`. Cancelled in between, each is written or not."""
        for record in records:
            await self.patiently(lambda record=record: _unbroken(self._append(record)))

    async def sync(self) -> None:
        await self.patiently(self._ledger.sync)

    async def commit(self, *records: AgentRecord) -> None:
        await self.write(*records)
        await self.sync()

    async def started(self, call: ToolCall, traits: Traits) -> None:
        step = self.conversation.open
        if step is None:
            raise InvariantBroken(f"{call.id} starts outside of a step")
        if not traits.concurrency_safe:
            await self._after_what_ran_before(step, call)
        record = ToolStarted(
            turn=step.turn, step=step.step, call_id=call.id, tool=call.name, read_only=traits.read_only
        )
        await self.write(record)
        if not traits.read_only:
            await self.sync()

    async def _after_what_ran_before(self, step: OpenStep, call: ToolCall) -> None:
        """A call that runs alone also starts alone in the ledger: the ends of earlier calls, which are on their way to
        it, go first. After a crash nobody has to guess then what had come of them.
        """
        earlier = [other.id for other in takewhile(lambda other: other.id != call.id, step.calls())]
        while any(other in step.started and other not in step.finished for other in earlier):
            self._finished.clear()
            await self._finished.wait()

    async def store(self, envelope: Envelope) -> Receipt:
        """Durable when it says `stored` or `duplicate`. Waits for no disk: the sender tries again."""
        try:
            receipt = await _unbroken(self._store(envelope))
            if receipt.outcome in ("stored", "duplicate"):
                await self._ledger.sync()
        except EnvironmentProblem as problem:
            return Receipt(outcome="failed", text=str(problem))
        return receipt

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Repeat what the machine does not let happen yet, for as long as it takes."""
        while True:
            try:
                return await work()
            except EnvironmentProblem as problem:
                await self._wait(str(problem))

    async def _wait(self, problem: str) -> None:
        """Somebody may get through while others still wait, so only the last one lifts the block."""
        self._waiting += 1
        self._on_blocked(f"blocked: {problem}")
        try:
            await self._sleep(self._again_s)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._on_blocked("")

    async def _append(self, record: AgentRecord) -> None:
        async with self._order:
            await self._ledger.append(record)
            self.conversation.apply(record)
        if isinstance(record, ToolFinished):
            self._finished.set()

    async def _store(self, envelope: Envelope) -> Receipt:
        async with self._order:
            receipt = self.conversation.mailbox.accept(envelope)
            if receipt.outcome == "stored":
                record = MailStored(envelope=envelope)
                await self._ledger.append(record)
                self.conversation.apply(record)
            return receipt


async def _unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Let it come to its end even when the caller is cancelled, so that ledger and conversation never disagree."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise
