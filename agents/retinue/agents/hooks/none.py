"""What an agent without hooks does about them: nothing. Apart, so that it loads nothing either."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from retinue.agents.mail.envelopes import Envelope
from retinue.tools.execution.stages import AfterPort, OpinionPort
from retinue.tools.permissions.chain import RequestPort


@dataclass(frozen=True, slots=True)
class Refused:
    """A person's words that the agent shall not read."""

    mail: str
    reason: str


class NoHooks:
    """The moments of an agent's life at which hooks are asked."""

    @property
    def opinions(self) -> tuple[OpinionPort, ...]:
        return ()

    @property
    def afterwards(self) -> tuple[AfterPort, ...]:
        return ()

    @property
    def requests(self) -> RequestPort | None:
        return None

    async def begin(self, *, resumed: bool) -> None:
        """The agent's process is there, and has done nothing yet."""

    async def read(self, envelopes: Sequence[Envelope]) -> tuple[Refused, ...]:
        """The agent is about to read this mail; what of it it shall not."""
        del envelopes
        return ()

    async def end_of_turn(self, last_words: str, background: Collection[str]) -> str:
        """The agent is about to rest. Why it shall go on instead; empty: it may rest."""
        del last_words, background
        return ""

    def rested(self) -> None:
        """The agent rests."""

    def words(self) -> tuple[str, ...]:
        """What hooks have to tell the agent with its next request."""
        return ()

    def told(self, count: int) -> None:
        """The first so many words are in a request."""
        del count

    async def end(self) -> None:
        """The agent ends in good order."""

    async def close(self) -> None:
        """No process of a hook is left."""
