"""The merge queue: what happens to a submission, in which order, and who has it when it comes back. Pure.

    queued ──► building ──► verifying ──► intending ──► landing ──► landed
       ▲           │            │                                     ▲
       └─ returned ◄────────────┘        nothing to merge ────────────┘

At most one item is between queued and landed. What will become the tip is written down (`Intend`) before the ref moves,
so that after a crash the ref itself says whether it did. Oldest first submission first: who was sent back does not go
to the end of the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, assert_never

from retinue.tools.errors import InvariantBroken

RETURNS_EACH = 3
ATTEMPTS = 3


class State(StrEnum):
    QUEUED = "queued"
    BUILDING = "building"
    VERIFYING = "verifying"
    INTENDING = "intending"
    LANDING = "landing"
    LANDED = "landed"
    RETURNED = "returned"
    WITHDRAWN = "withdrawn"


IN_FLIGHT = (State.BUILDING, State.VERIFYING, State.INTENDING, State.LANDING)
Holder = Literal["queue", "author", "lead", "human", "nobody"]


@dataclass(frozen=True, slots=True)
class Item:
    """One task's work. `place` is that of its first submission; `holder` is who must act next."""

    task: str
    agent: str
    branch: str
    sha: str
    place: int
    state: State = State.QUEUED
    holder: Holder = "queue"
    returns: int = 0
    attempts: int = 0
    candidate: str | None = None
    withdrawn: bool = False


# --- events --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submitted:
    task: str
    agent: str
    branch: str
    sha: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The task was deleted, or failed."""

    task: str


@dataclass(frozen=True, slots=True)
class AgentGone:
    """An agent has ended for good: what it would have to repair goes to somebody else."""

    agent: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """A human has looked at why the queue halted; the tip is this now."""

    tip: str


@dataclass(frozen=True, slots=True)
class Built:
    """`candidate` is None when the work changes nothing against the tip."""

    task: str
    candidate: str | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A conflict, or a check that failed."""

    task: str
    reason: str
    output: str = ""


@dataclass(frozen=True, slots=True)
class Passed:
    task: str


@dataclass(frozen=True, slots=True)
class Intended:
    """The intent is durable."""

    task: str


@dataclass(frozen=True, slots=True)
class Moved:
    task: str


@dataclass(frozen=True, slots=True)
class Broke:
    """The machinery failed, not the work: tried again, then the queue halts."""

    task: str
    reason: str


@dataclass(frozen=True, slots=True)
class TipElsewhere:
    """The tip was not where we left it when we wanted to move it."""

    task: str
    actual: str


Step = Built | Rejected | Passed | Intended | Moved | Broke | TipElsewhere
Event = Submitted | Withdrawn | AgentGone | Resumed | Step


# --- effects -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Build:
    item: Item
    tip: str


@dataclass(frozen=True, slots=True)
class Verify:
    item: Item
    candidate: str


@dataclass(frozen=True, slots=True)
class Intend:
    item: Item
    tip: str
    candidate: str


@dataclass(frozen=True, slots=True)
class MoveTip:
    item: Item
    tip: str
    candidate: str


@dataclass(frozen=True, slots=True)
class Land:
    """The item is in. `changed` is false when it was in the tip already; else the tip has moved to `tip`."""

    item: Item
    tip: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Return:
    """The item is back with `item.holder`."""

    item: Item
    reason: str
    output: str


@dataclass(frozen=True, slots=True)
class Halt:
    """Nothing more is merged until a human has looked."""

    reason: str


Effect = Build | Verify | Intend | MoveTip | Land | Return | Halt


@dataclass(slots=True)
class MergeQueue:
    """Events in, effects out. An event that its state cannot take raises InvariantBroken and changes nothing."""

    tip: str
    lead: str | None = None
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    gone: set[str] = field(default_factory=set[str])
    halted: str | None = None

    def handle(self, event: Event) -> list[Effect]:
        match event:
            case Submitted():
                self._submit(event)
                effects: list[Effect] = []
            case Withdrawn():
                self._withdraw(event)
                effects = []
            case AgentGone():
                self.gone.add(event.agent)
                effects = list(self._hand_over(event.agent))
            case Resumed():
                self._resume(event)
                effects = []
            case _:
                effects = list(self._step(event))
        return [*effects, *self.start()]

    @property
    def busy(self) -> bool:
        """Something waits for us, or is on its way."""
        return any(item.holder == "queue" for item in self.items.values())

    @property
    def in_flight(self) -> Item | None:
        return next((item for item in self.items.values() if item.state in IN_FLIGHT), None)

    # --- coming and going ------------------------------------------------------------------------------------------

    def _submit(self, event: Submitted) -> None:
        known = self.items.get(event.task)
        if known is None:
            place = 1 + max((item.place for item in self.items.values()), default=0)
            self.items[event.task] = Item(event.task, event.agent, event.branch, event.sha, place)
            return
        if known.state in IN_FLIGHT or known.state is State.LANDED:
            if known.sha == event.sha:
                return
            raise InvariantBroken(f"task {event.task} was submitted again while it is {known.state}")
        self._set(
            known,
            agent=event.agent,
            branch=event.branch,
            sha=event.sha,
            state=State.QUEUED,
            holder="queue",
            attempts=0,
            withdrawn=False,
        )

    def _withdraw(self, event: Withdrawn) -> None:
        item = self.items.get(event.task)
        if item is None or item.state is State.LANDED:
            return
        if item.state in IN_FLIGHT:
            self._set(item, withdrawn=True)
        else:
            self._drop(item)

    def _resume(self, event: Resumed) -> None:
        if self.halted is None:
            raise InvariantBroken("the merge queue is not halted")
        self.halted, self.tip = None, event.tip
        item = self.in_flight
        if item is not None:
            self._set(item, state=State.QUEUED, attempts=0, candidate=None)

    def _hand_over(self, agent: str) -> Iterator[Effect]:
        for item in list(self.items.values()):
            held = item.state is State.RETURNED and (
                (item.holder == "author" and item.agent == agent) or (item.holder == "lead" and self.lead == agent)
            )
            if held:
                moved = self._set(item, holder=self.holder_of(item))
                yield Return(moved, f"{agent}, who had it, has ended", "")

    # --- one item on its way ---------------------------------------------------------------------------------------

    def _step(self, event: Step) -> Iterator[Effect]:
        item = self._on_its_way(event.task)
        if item.withdrawn and not isinstance(event, Intended | Moved | TipElsewhere):
            self._drop(item)
            return
        match event:
            case Built():
                yield self._built(self._must(item, State.BUILDING), event.candidate)
            case Rejected():
                yield self._return(self._must(item, State.BUILDING, State.VERIFYING), event)
            case Passed():
                moved = self._set(self._must(item, State.VERIFYING), state=State.INTENDING)
                yield Intend(moved, self.tip, _candidate(moved))
            case Intended():
                moved = self._set(self._must(item, State.INTENDING), state=State.LANDING)
                yield MoveTip(moved, self.tip, _candidate(moved))
            case Moved():
                yield self._land(self._must(item, State.LANDING))
            case Broke():
                yield from self._retry(item, event.reason)
            case TipElsewhere():
                self._must(item, State.LANDING)
                yield self._halt(f"the team's tip is at {event.actual}, where the merge queue did not put it")
            case _:
                assert_never(event)

    def _built(self, item: Item, candidate: str | None) -> Effect:
        if candidate is None:
            return Land(self._set(item, state=State.LANDED, holder="nobody"), self.tip, changed=False)
        return Verify(self._set(item, state=State.VERIFYING, candidate=candidate), candidate)

    def _land(self, item: Item) -> Effect:
        self.tip = _candidate(item)
        return Land(self._set(item, state=State.LANDED, holder="nobody"), self.tip, changed=True)

    def _return(self, item: Item, event: Rejected) -> Effect:
        counted = replace(item, returns=item.returns + 1)
        moved = self._set(counted, state=State.RETURNED, holder=self.holder_of(counted), candidate=None)
        return Return(moved, event.reason, event.output)

    def _retry(self, item: Item, reason: str) -> Iterator[Effect]:
        if item.attempts + 1 >= ATTEMPTS:
            yield self._halt(f"task {item.task} could not be merged: {reason}")
            return
        if item.state in (State.INTENDING, State.LANDING):
            moved = self._set(item, attempts=item.attempts + 1)
            wanted = Intend if item.state is State.INTENDING else MoveTip
            yield wanted(moved, self.tip, _candidate(moved))
            return
        self._set(item, state=State.QUEUED, attempts=item.attempts + 1, candidate=None)

    def _halt(self, reason: str) -> Effect:
        self.halted = reason
        return Halt(reason)

    def start(self) -> Iterator[Effect]:
        if self.halted is not None or self.in_flight is not None:
            return
        waiting = [item for item in self.items.values() if item.state is State.QUEUED]
        if waiting:
            first = min(waiting, key=lambda item: item.place)
            yield Build(self._set(first, state=State.BUILDING), self.tip)

    # --- small things ----------------------------------------------------------------------------------------------

    def holder_of(self, item: Item) -> Holder:
        """The author first, then the lead, then the human; each has RETURNS_EACH returns, less the first hand-over."""
        if item.returns < RETURNS_EACH and item.agent not in self.gone:
            return "author"
        lead_can = self.lead is not None and self.lead not in self.gone and self.lead != item.agent
        return "lead" if lead_can and item.returns < 2 * RETURNS_EACH else "human"

    def _on_its_way(self, task: str) -> Item:
        item = self.items.get(task)
        if item is None or item.state not in IN_FLIGHT:
            raise InvariantBroken(f"task {task} is not on its way through the merge queue")
        return item

    def _must(self, item: Item, *states: State) -> Item:
        if item.state not in states:
            raise InvariantBroken(f"task {item.task} is {item.state}, not {' or '.join(states)}")
        return item

    def _drop(self, item: Item) -> None:
        self._set(item, state=State.WITHDRAWN, holder="nobody", withdrawn=True)

    def _set(self, item: Item, **changes: object) -> Item:
        changed = replace(item, **changes)
        self.items[item.task] = changed
        return changed


def _candidate(item: Item) -> str:
    if item.candidate is None:
        raise InvariantBroken(f"task {item.task} is {item.state} without a candidate")
    return item.candidate
