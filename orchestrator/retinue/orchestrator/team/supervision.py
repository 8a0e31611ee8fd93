"""When a lost agent may come back: so many times in a window, after a growing delay. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Intensity and decay: `limit` restarts within `window_s` seconds; the delay doubles within the window."""

    limit: int = 5
    window_s: float = 120.0
    first_delay_s: float = 0.1
    most_delay_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    again: bool
    delay_s: float
    past: tuple[float, ...]


def may_restart(policy: RestartPolicy, past: tuple[float, ...], now: float) -> Verdict:
    """Decide one restart. `past` are the times of earlier ones; keep what comes back."""
    recent = tuple(t for t in past if now - t <= policy.window_s)
    if len(recent) >= policy.limit:
        return Verdict(again=False, delay_s=0.0, past=recent)
    delay = 0.0 if not recent else min(policy.first_delay_s * 2 ** (len(recent) - 1), policy.most_delay_s)
    return Verdict(again=True, delay_s=delay, past=(*recent, now))
