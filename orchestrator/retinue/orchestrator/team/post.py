"""Mail as the team sees it: where a name is now, and keeping mail for agents that have no process at the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from retinue.agents.mail.envelopes import HUMAN, TEAM, Body, Envelope, Receipt
from retinue.agents.records import MailStored
from retinue.orchestrator.runtime.port import Address, Resolved, Unreachable
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.crew import Crew
from retinue.orchestrator.team.state import MemberState

DELIVERY_S = 30.0
"""How long mail may look for its agent's next process before the sender is told that nothing was stored."""
EVERYBODY = "*"


class Post:
    def __init__(self, core: TeamCore, crew: Crew) -> None:
        self._core = core
        self._crew = crew

    def resolve(self, sender: str, to: str) -> Resolved:
        """A name, a role, or `*` for every member but the sender."""
        members = [m for m in self._core.state.living() if m.boot.role != "child"]
        found = [m for m in members if to in (m.boot.name, m.boot.agent)]
        if not found and to in ("lead", "teammate"):
            found = [m for m in members if m.boot.role == to and m.boot.agent != sender]
        if to == EVERYBODY:
            found = [m for m in members if m.boot.agent != sender]
        if found:
            return Resolved(addresses=tuple(self._address(m) for m in found))
        return Resolved(refusal=self._nobody(to, members))

    def _nobody(self, to: str, members: Sequence[MemberState]) -> str:
        gone = self._core.state.by_name(to)
        names = ", ".join(sorted(m.boot.name for m in members)) or "none"
        if gone is not None and gone.ended is not None:
            return f"{to} has ended ({gone.ended.why}). Agents: {names}."
        return f"no such agent: {to}. Agents: {names}."

    def _address(self, member: MemberState) -> Address:
        station = self._crew.station(member.boot.agent)
        number = 0 if station.handle is None else member.incarnation
        return Address(name=member.boot.name, agent=member.boot.agent, incarnation=number)

    async def deliver(self, envelope: Envelope) -> Receipt:
        """Hand over to the living process, or store on its behalf while there is none. The same id is the same mail."""
        try:
            async with asyncio.timeout(DELIVERY_S):
                while True:
                    receipt = await self._try(envelope)
                    if receipt is not None:
                        return receipt
        except TimeoutError:
            return Receipt(outcome="failed", text="nothing was stored: the agent did not answer; send it again later")

    async def _try(self, envelope: Envelope) -> Receipt | None:
        member = self._core.state.members.get(envelope.recipient)
        if member is None or member.ended is not None:
            return Receipt(outcome="no_such_agent", text=self._nobody(envelope.recipient, self._core.state.living()))
        station = self._crew.station(envelope.recipient)
        async with station.gate:
            # Inside the gate no next incarnation can begin to read the ledger, so what is stored here is seen by it.
            if station.handle is None:
                await self._core.record(MailStored(envelope=envelope))
                return Receipt(outcome="stored")
            handle = station.handle
        try:
            return await handle.deliver(envelope)
        except Unreachable:
            await asyncio.sleep(0.2)  # the death watch takes the handle away, or the process answers the next time
            return None

    async def send(self, recipient: str, mail_id: str, body: Body, *, causation: str = "") -> Receipt:
        """Mail from the team itself."""
        return await self.deliver(
            Envelope(id=mail_id, sender=TEAM, recipient=recipient, body=body, causation=causation)
        )

    async def from_human(self, to: str, mail_id: str, body: Body) -> Receipt:
        resolved = self.resolve(HUMAN, to)
        if resolved.refusal:
            return Receipt(outcome="no_such_agent", text=resolved.refusal)
        receipts = await asyncio.gather(
            *(
                self.deliver(Envelope(id=f"{mail_id}/{a.agent}", sender=HUMAN, recipient=a.agent, body=body))
                for a in resolved.addresses
            )
        )
        bad = [r for r in receipts if r.outcome not in ("stored", "duplicate")]
        return bad[0] if bad else Receipt(outcome="stored", text=", ".join(a.name for a in resolved.addresses))
