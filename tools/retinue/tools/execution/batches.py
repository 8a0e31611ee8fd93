"""The calls of a finished assistant message, cut into batches: the static path, with the rule and cap of the lane."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from retinue.tools.base import Traits
from retinue.tools.execution.calls import ToolCall
from retinue.tools.execution.lane import CAP


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive concurrency-safe calls, or one unsafe call alone."""

    calls: tuple[ToolCall, ...]
    concurrency_safe: bool

    def width(self, cap: int = CAP) -> int:
        """How many of it run at once, at most."""
        return min(len(self.calls), cap) if self.concurrency_safe else 1


def partition(calls: Iterable[ToolCall], traits_of: Callable[[ToolCall], Traits]) -> tuple[Batch, ...]:
    """In order; the safe ones are never gathered over an unsafe one between them."""
    runs = ((safe, tuple(run)) for safe, run in groupby(calls, key=lambda call: traits_of(call).concurrency_safe))
    return tuple(
        batch
        for safe, run in runs
        for batch in ([Batch(run, True)] if safe else [Batch((call,), False) for call in run])
    )
