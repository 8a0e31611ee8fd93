"""The merge queue after a restart: rebuilt from the ledger, compared with where the tip really is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from retinue.orchestrator.ledger.records import MergeIntended, WorkMerged, WorkReturned, WorkSubmitted
from retinue.orchestrator.merging.queue import (
    Effect,
    Halt,
    Item,
    Land,
    MergeQueue,
    MoveTip,
    State,
    Submitted,
    Withdrawn,
)
from retinue.tools.errors import InvariantBroken

QueueRecord = WorkSubmitted | MergeIntended | WorkMerged | WorkReturned


def recover(
    records: Iterable[QueueRecord],
    *,
    base: str,
    actual_tip: str,
    lead: str | None = None,
    gone: Iterable[str] = (),
    withdrawn: Iterable[str] = (),
) -> tuple[MergeQueue, list[Effect]]:
    """The queue as it stood, and what to do next. `base` is the run's base, `actual_tip` the Depot's ref;
    `withdrawn` are tasks that were deleted or failed.

    What was built or checked when we died is begun again. An intent is finished: as landed when the tip is there, by
    moving the tip when it still stands where it was. A tip that is anywhere else halts the queue.
    """
    queue = MergeQueue(tip=base, lead=lead, gone=set(gone))
    # Nothing starts while the past is told: starting is what `handle` does with a queue that is not halted.
    queue.halted = "recovering"
    for record in records:
        _fold(queue, record)
    for task in withdrawn:
        queue.handle(Withdrawn(task))
    queue.halted = None
    return queue, _decide(queue, actual_tip)


def _fold(queue: MergeQueue, record: QueueRecord) -> None:
    match record:
        case WorkSubmitted():
            queue.handle(Submitted(record.task_id, record.agent, record.branch, record.sha))
        case MergeIntended():
            item = _item(queue, record.task_id)
            queue.items[item.task] = replace(item, state=State.LANDING, candidate=record.candidate)
            queue.tip = record.tip
        case WorkMerged():
            item = _item(queue, record.task_id)
            queue.items[item.task] = replace(item, state=State.LANDED, holder="nobody")
            queue.tip = record.tip
        case WorkReturned():
            item = _item(queue, record.task_id)
            counted = replace(item, returns=item.returns + 1, state=State.RETURNED, candidate=None)
            queue.items[item.task] = replace(counted, holder=queue.holder_of(counted))


def _decide(queue: MergeQueue, actual_tip: str) -> list[Effect]:
    item = queue.in_flight
    effects: list[Effect] = []
    if item is not None and item.candidate == actual_tip:
        queue.tip = actual_tip
        landed = queue.items[item.task] = replace(item, state=State.LANDED, holder="nobody")
        effects.append(Land(landed, actual_tip, changed=True))
    elif queue.tip != actual_tip:
        queue.halted = f"the team's tip is at {actual_tip}; by the ledger it should be at {queue.tip}"
        return [Halt(queue.halted)]
    elif item is not None and item.candidate is not None:
        return [MoveTip(item, queue.tip, item.candidate)]
    return [*effects, *queue.start()]


def _item(queue: MergeQueue, task: str) -> Item:
    item = queue.items.get(task)
    if item is None:
        raise InvariantBroken(f"the ledger speaks of task {task} in the merge queue before it was submitted")
    return item
