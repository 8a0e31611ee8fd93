"""Which tool calls of one assistant message may run now, and in which order their results leave.

Pure: no I/O, no clock, no tasks. Events go in, effects come out; the executor carries the effects out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from retinue.tools.base import Traits
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.synthetic import Cause, Closing, synthetic

CAP = 10


class Status(Enum):
    QUEUED = "queued"
    EXECUTING = "executing"
    COMPLETED = "completed"
    YIELDED = "yielded"


# --- events ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submitted:
    call: str
    name: str
    traits: Traits


@dataclass(frozen=True, slots=True)
class EffectBegun:
    """From here on the call counts as started: the message cannot be withdrawn any more."""

    call: str


@dataclass(frozen=True, slots=True)
class Finished:
    """`result` is None when the call was cancelled before it had one."""

    call: str
    result: CallResult | None


@dataclass(frozen=True, slots=True)
class Aborted:
    """Called off from outside."""

    reason: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The message never was. Legal only while `may_withdraw`."""


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """No further call will come."""


@dataclass(frozen=True, slots=True)
class SettleExpired:
    """What was cancelled had its time to end."""


Event = Submitted | EffectBegun | Finished | Aborted | Withdrawn | StreamEnded | SettleExpired


# --- effects ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    call: str


@dataclass(frozen=True, slots=True)
class Cancel:
    call: str


@dataclass(frozen=True, slots=True)
class Emit:
    result: CallResult


Effect = Start | Cancel | Emit


@dataclass(slots=True)
class _Entry:
    call: str
    name: str
    traits: Traits
    status: Status = Status.QUEUED
    begun: bool = False
    result: CallResult | None = None


class Lane:
    """The calls of one assistant message, from its first block to its last result.

    - A call starts when nothing is executing, or when it and all that is executing are concurrency-safe and fewer than
      `cap`. Nothing overtakes a call that has to wait.
    - Results leave in the order of the calls.
    - A failure with `fails_group`, an abort or a withdrawal closes the lane: what executes is cancelled, what waits or
      is still to come gets a synthetic result unrun. What executes keeps its place until it has ended or its time is
      up; if it ended with a result of its own after all, that one stands.
    """

    def __init__(self, cap: int = CAP) -> None:
        if cap < 1:
            raise InvariantBroken(f"a lane for {cap} calls runs none")
        self._cap = cap
        self._entries: dict[str, _Entry] = {}
        self._order: list[_Entry] = []
        self._next_start = 0
        self._next_emit = 0
        self._executing: dict[str, _Entry] = {}
        self._closing: Closing | None = None
        self._stream_open = True

    def handle(self, event: Event) -> list[Effect]:
        return [*self._take(event), *self._start(), *self._emit()]

    # --- questions ---

    @property
    def may_withdraw(self) -> bool:
        return not any(entry.begun for entry in self._order)

    @property
    def closed(self) -> bool:
        return self._closing is not None

    @property
    def idle(self) -> bool:
        return not self._executing

    @property
    def finished(self) -> bool:
        """Every call has left its result, and none can come."""
        return not self._stream_open and self._next_emit == len(self._order)

    def status(self, call: str) -> Status:
        return self._entry(call).status

    def executing(self) -> tuple[str, ...]:
        return tuple(self._executing)

    # --- events ---

    def _take(self, event: Event) -> list[Effect]:
        match event:
            case Submitted():
                return self._submit(event)
            case EffectBegun(call):
                return self._begin(call)
            case Finished(call, result):
                return self._finish(self._entry(call), result)
            case Aborted(reason):
                return list(self._close(Closing(Cause.ABORTED, reason)))
            case Withdrawn():
                return self._withdraw()
            case StreamEnded():
                self._stream_open = False
                return []
            case SettleExpired():
                return self._give_up()
            case _:
                assert_never(event)

    def _submit(self, event: Submitted) -> list[Effect]:
        if event.call in self._entries:
            raise InvariantBroken(f"{event.call} submitted twice")
        if not self._stream_open:
            raise InvariantBroken(f"{event.call} submitted after the end of the stream")
        entry = _Entry(event.call, event.name, event.traits)
        self._entries[event.call] = entry
        self._order.append(entry)
        if self._closing is not None:
            self._complete(entry, synthetic(entry.call, entry.name, self._closing))
        return []

    def _begin(self, call: str) -> list[Effect]:
        entry = self._entry(call)
        if entry.status is not Status.EXECUTING or self._closing is not None:
            raise InvariantBroken(f"{call} may not begin: it is {entry.status.value}, or was called off")
        entry.begun = True
        return []

    def _finish(self, entry: _Entry, result: CallResult | None) -> list[Effect]:
        if entry.status is Status.QUEUED:
            raise InvariantBroken(f"{entry.call} finished before it was started")
        if entry.status is not Status.EXECUTING:
            return []  # its time was up before; the first answer stands
        self._complete(entry, result or self._unfinished(entry, stuck=False))
        if result is not None and result.fails_group and self._closing is None:
            return list(self._close(Closing(Cause.SIBLING, f"{entry.name} ({entry.call})")))
        return []

    def _withdraw(self) -> list[Effect]:
        if not self.may_withdraw:
            raise InvariantBroken("a message cannot be withdrawn after one of its calls began")
        self._stream_open = False
        return list(self._close(Closing(Cause.WITHDRAWN)))

    def _give_up(self) -> list[Effect]:
        if self._closing is not None:
            for entry in list(self._executing.values()):
                self._complete(entry, self._unfinished(entry, stuck=True))
        return []

    # --- steps ---

    def _close(self, closing: Closing) -> Iterator[Effect]:
        if self._closing is not None:
            return
        self._closing = closing
        for entry in self._order[self._next_start :]:
            self._complete(entry, synthetic(entry.call, entry.name, closing))
        self._next_start = len(self._order)
        for call in self._executing:
            yield Cancel(call)

    def _unfinished(self, entry: _Entry, *, stuck: bool) -> CallResult:
        closing = self._closing or Closing(Cause.INTERRUPTED)
        return synthetic(
            entry.call, entry.name, closing, began=entry.begun, read_only=entry.traits.read_only, stuck=stuck
        )

    def _start(self) -> Iterator[Effect]:
        while self._next_start < len(self._order) and self._closing is None:
            entry = self._order[self._next_start]
            if not self._may_start(entry):
                return
            entry.status = Status.EXECUTING
            self._executing[entry.call] = entry
            self._next_start += 1
            yield Start(entry.call)

    def _may_start(self, entry: _Entry) -> bool:
        if not self._executing:
            return True
        together = (entry, *self._executing.values())
        return len(together) <= self._cap and all(e.traits.concurrency_safe for e in together)

    def _emit(self) -> Iterator[Effect]:
        while self._next_emit < len(self._order):
            entry = self._order[self._next_emit]
            if entry.result is None:
                return
            entry.status = Status.YIELDED
            self._next_emit += 1
            yield Emit(entry.result)

    def _complete(self, entry: _Entry, result: CallResult) -> None:
        entry.status = Status.COMPLETED
        entry.result = result
        self._executing.pop(entry.call, None)

    def _entry(self, call: str) -> _Entry:
        try:
            return self._entries[call]
        except KeyError:
            raise InvariantBroken(f"{call} was never submitted") from None
