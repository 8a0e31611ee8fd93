"""When a kept cluster may end. Pure: the clock and the state of the runs' locks are passed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RETIRED_S = 20.0
"""How long a cluster of an older build stays when nobody uses it: a command may just be about to register its run."""


@dataclass(frozen=True, slots=True)
class Patience:
    """`idle_s`: a kept cluster without runs. `ended_s`: a run whose lock is free, since a team that Ray restarts lets
    go of it for a moment. `unused_s`: a run that was registered and does not start, an ephemeral cluster without any.
    """

    idle_s: float
    ended_s: float
    unused_s: float
    ephemeral: bool = False


@dataclass(slots=True)
class _Seen:
    since: float
    live: bool = False
    """Was it ever?"""


@dataclass(slots=True)
class Watch:
    """Follows the runs of one cluster from look to look."""

    patience: Patience
    begun: float
    _seen: dict[str, _Seen] = field(default_factory=dict[str, _Seen])
    _quiet_since: float = field(init=False)
    _had_runs: bool = False
    _busy: bool = False

    def __post_init__(self) -> None:
        self._quiet_since = self.begun

    def look(self, now: float, held: Mapping[str, bool]) -> frozenset[str]:
        """Take in which runs are registered, and whose lock is held. Returns those that have ended for good."""
        self._seen = {run: seen for run, seen in self._seen.items() if run in held}
        for run, is_held in held.items():
            seen = self._seen.setdefault(run, _Seen(now))
            if is_held:
                seen.since, seen.live = now, True
        ended = frozenset(run for run in held if self._has_ended(self._seen[run], now))
        if held:
            self._had_runs = True
        self._busy = len(ended) < len(held)
        if self._busy:
            self._quiet_since = now
        return ended

    def asked(self, now: float) -> None:
        """A command has just been told to use this cluster."""
        self._quiet_since = max(self._quiet_since, now)

    def may_end(self, now: float, *, retired: bool = False) -> bool:
        return not self._busy and now - self._quiet_since >= self._quiet_for(retired)

    def _has_ended(self, seen: _Seen, now: float) -> bool:
        return now - seen.since >= (self.patience.ended_s if seen.live else self.patience.unused_s)

    def _quiet_for(self, retired: bool) -> float:
        if self.patience.ephemeral:
            return 0.0 if self._had_runs else self.patience.unused_s
        return min(self.patience.idle_s, RETIRED_S) if retired else self.patience.idle_s
