"""How long a run was up: the time in which it had no team does not count against its limits. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Uptime:
    """`gaps` are (when it was up again, for how many seconds it was not)."""

    gaps: tuple[tuple[float, float], ...] = ()

    def since(self, at: float, now: float) -> float:
        """Seconds from `at` to `now` without the gaps between."""
        return now - at - sum(seconds for end, seconds in self.gaps if end > at)
