"""How often a server ended by itself lately. Pure: the time is passed in."""

from __future__ import annotations

from collections.abc import Callable

FORGOTTEN_S = 600.0


class Crashes:
    """`most` of them are forgiven; one more, and the server is left alone until some are forgotten."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._times: list[float] = []
        self.why = ""

    def note(self, why: str) -> None:
        self._times.append(self._clock())
        self.why = why

    def lately(self) -> int:
        now = self._clock()
        self._times = [when for when in self._times if now - when < FORGOTTEN_S]
        return len(self._times)

    @property
    def too_many(self) -> bool:
        return self.lately() > self._most
