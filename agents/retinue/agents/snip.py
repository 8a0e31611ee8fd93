"""Implements `HistoryPort`: an agent shortens its own conversation, by a record."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.agents.journal import Journal
from retinue.agents.records import HistorySnipped
from retinue.agents.snipped import exchanges
from retinue.tools.errors import ToolError
from retinue.tools.ports import Stretch
from retinue.tools.text import counted


@dataclass(frozen=True, slots=True)
class OwnHistory:
    journal: Journal

    async def snip(self, key: str, stretch: Stretch, note: str) -> int:
        conversation = self.journal.conversation
        if key not in conversation.snips:
            there = len(exchanges(conversation.messages()))
            if stretch.oldest > there:
                raise ToolError(f"There are only {counted(there, 'exchange')} so far: `oldest` is {there} at most.")
            record = HistorySnipped(key=key, oldest=stretch.oldest, newest=stretch.newest, note=note)
            await self.journal.write(record)
        return conversation.snips[key]
