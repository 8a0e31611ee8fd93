"""How often an agent was denied: who asks for the same again and again is told to work in another way. Pure."""

from __future__ import annotations

from dataclasses import dataclass

CONSECUTIVE_LIMIT = 3
TOTAL_LIMIT = 20


@dataclass(slots=True)
class Denials:
    """Counters of one agent; both are kept over a restart. An allowed call ends a row, the total ends at its limit."""

    consecutive: int = 0
    total: int = 0

    def allowed(self) -> None:
        self.consecutive = 0

    def denied(self) -> str | None:
        """Counts one, and says what to tell the agent when it was one too many."""
        self.consecutive += 1
        self.total += 1
        in_a_row, in_all = self.consecutive, self.total
        if in_all >= TOTAL_LIMIT:
            self.total = 0
            return f"This was the {in_all}th call that was denied. {_ADVICE}"
        if in_a_row >= CONSECUTIVE_LIMIT:
            return f"{in_a_row} calls in a row were denied. {_ADVICE}"
        return None


_ADVICE = (
    "Change your approach: do not ask for the same in other words. Work with what is allowed, "
    "or tell your lead what you cannot do and why."
)
