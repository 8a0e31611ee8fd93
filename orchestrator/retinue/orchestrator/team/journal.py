"""The team's own pen in the ledger, and everything that it reads of it when it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.boot import AgentLimits
from retinue.agents.records import MessageClosed, SideAnswered
from retinue.orchestrator.ledger.frames import OPENED
from retinue.orchestrator.ledger.parse import body_of, parse_agent_record, parse_team_record
from retinue.orchestrator.ledger.reader import read_all
from retinue.orchestrator.ledger.records import TEAM_WRITER, TeamRecord
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.orchestrator.team.budget import Account, Budget, Price
from retinue.orchestrator.team.state import TeamState
from retinue.orchestrator.team.uptime import Uptime


@dataclass(slots=True)
class LedgerJournal:
    """Implements `JournalPort`."""

    writer: LedgerWriter

    async def record(self, *records: TeamRecord) -> None:
        await self.writer.append_many([body_of(record) for record in records], durable=True)


@dataclass(slots=True)
class Recovered:
    """The fold of a whole ledger. `incarnation` is the last of the team's own, 0 for a run that never began."""

    state: TeamState = field(default_factory=TeamState)
    incarnation: int = 0
    started_at: float | None = None
    uptime: Uptime = field(default_factory=Uptime)
    spent: list[tuple[str, MessageClosed | SideAnswered]] = field(
        default_factory=list[tuple[str, MessageClosed | SideAnswered]]
    )

    def budget(self, limits: AgentLimits, price: Price) -> Budget:
        """All accounts, with what was used before."""
        made = Budget(Account(limits), price)
        for member in self.state.members.values():
            made.open(member.boot.agent, member.boot.limits)
        for agent, closed in self.spent:
            if agent in made.agents:
                made.run.requests += 1
                made.agents[agent].requests += 1
                if isinstance(closed, MessageClosed):
                    made.settle(agent, closed.step, closed.model, closed.usage)
                else:
                    made.settle_side(agent, closed.key, closed.model, closed.usage)
        return made


def recover_team(ledger: Path, now: float | None = None) -> Recovered:
    """Blocking: reads the whole file. A run without a ledger is a new one. `now`: the run is up again from then on."""
    found = Recovered()
    if not ledger.exists():
        return found
    gaps: list[tuple[float, float]] = []
    last = None
    for record in read_all(ledger, voided=False):
        found.started_at = record.at if found.started_at is None else found.started_at
        if last is not None and record.kind == OPENED and record.writer == TEAM_WRITER:
            gaps.append((record.at, max(0.0, record.at - last)))
        last = record.at
        if record.writer == TEAM_WRITER:
            found.incarnation = max(found.incarnation, record.incarnation)
            typed = parse_team_record(record.kind, record.body)
            if typed is not None:
                found.state.apply(typed)
        elif record.kind in ("message_closed", "side_answered"):
            closed = parse_agent_record(record.kind, record.body)
            if isinstance(closed, MessageClosed | SideAnswered):
                found.spent.append((record.writer, closed))
    if last is not None and now is not None:
        gaps.append((now, max(0.0, now - last)))
    found.uptime = Uptime(tuple(gaps))
    return found
