"""Ray shell of the run's ledger: an index by writer, so that a restart reads what is its own and nothing else."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from retinue.orchestrator.actors.cluster import spawn
from retinue.orchestrator.actors.options import LEDGER, run_actor_options
from retinue.orchestrator.actors.wire import pack
from retinue.orchestrator.ledger.history import Frame, Frames, mail_recipient
from retinue.orchestrator.ledger.reader import Tail


class LedgerActor:
    def __init__(self, ledger: str) -> None:
        self._tail = Tail(Path(ledger))
        self._by_agent: defaultdict[str, list[Frame]] = defaultdict(list)
        self._reading = asyncio.Lock()

    async def history(self, agent: str) -> bytes:
        """Everything that one agent wrote, and the mail that others stored for it, up to now."""
        async with self._reading:
            for record in await asyncio.to_thread(self._tail.poll):
                frame = Frame.of(record)
                self._by_agent[mail_recipient(record) or record.writer].append(frame)
        return pack(Frames(frames=tuple(self._by_agent[agent])))


def spawn_ledger(run: str, ledger: str) -> Any:
    return spawn(LedgerActor, run_actor_options(LEDGER, run), ledger)
