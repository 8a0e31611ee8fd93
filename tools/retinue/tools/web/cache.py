"""What was fetched a short while ago. Pure: the time is passed in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class TimedCache(Generic[V]):
    """Forgets after `ttl_s`, and the oldest first when there are too many or they are too large together."""

    def __init__(
        self, clock: Callable[[], float], *, ttl_s: float, max_entries: int, max_size: int, size: Callable[[V], int]
    ) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._max_entries = max_entries
        self._max_size = max_size
        self._size_of = size
        self._held: OrderedDict[str, tuple[float, int, V]] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: str) -> V | None:
        self._forget_old()
        found = self._held.get(key)
        return None if found is None else found[2]

    def put(self, key: str, value: V) -> None:
        """What is too large by itself is not kept."""
        self._drop(key)
        size = self._size_of(value)
        if size > self._max_size:
            return
        self._held[key] = (self._clock(), size, value)
        self._total += size
        while len(self._held) > self._max_entries or self._total > self._max_size:
            self._drop(next(iter(self._held)))

    def _forget_old(self) -> None:
        limit = self._clock() - self._ttl_s
        while self._held:
            key, (stored, _, _) = next(iter(self._held.items()))
            if stored > limit:
                return
            self._drop(key)

    def _drop(self, key: str) -> None:
        found = self._held.pop(key, None)
        if found is not None:
            self._total -= found[1]
