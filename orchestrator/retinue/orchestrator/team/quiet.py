"""Who of a team rests, whether all do, and whether somebody merely sleeps while all others rest."""

from __future__ import annotations

from retinue.agents.boot import AgentStatus
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.crew import Crew
from retinue.orchestrator.team.ending import Resting
from retinue.orchestrator.team.sleepers import Sleepers, Wake


class Quiet:
    """`since` is when the rest began that the last `everybody` found."""

    def __init__(self, core: TeamCore, crew: Crew) -> None:
        self.since = core.now()
        self._core = core
        self._crew = crew
        self._marks: list[tuple[str, int, int]] = []
        self._sleepers = Sleepers()

    def resting(self) -> list[Resting]:
        """All but sub-agents that could take work."""
        found: list[Resting] = []
        for member in self._core.state.living():
            status = self._crew.station(member.boot.agent).status
            if member.boot.role != "child" and status is not None and rests(status):
                failed = status.detail if status.state == "failed" else ""
                found.append(Resting(member.boot.name, member.boot.role, failed, tuple(status.background)))
        return found

    async def everybody(self) -> bool:
        """Two rounds of asking with the same answers: nothing can be on its way between agents in between.

        An agent rests only after all its mail was acknowledged, and who acknowledged mail does not rest before a
        turn of its own; so a message that crosses the first round shows as a new turn or as unread in the second.
        """
        if self._core.sending:
            return False
        first = await self._round()
        if first is None or first != await self._round() or self._core.bell.is_set():
            return False
        if first != self._marks:
            self._marks, self.since = first, self._core.now()
        return True

    def to_wake(self) -> tuple[Wake, ...]:
        """Whom all others wait for without anything that could come. Looks again by itself when that may change."""
        living = self._core.state.living()
        found = [self._crew.station(member.boot.agent).status for member in living if member.boot.role != "child"]
        known = [status for status in found if status is not None]
        if len(known) < len(found):
            return ()
        wakes, again_s = self._sleepers.look(known, self._core.state.board.all(), self._core.now())
        if again_s is not None:
            self._core.stir_in(again_s)
        return wakes

    async def _round(self) -> list[tuple[str, int, int]] | None:
        marks: list[tuple[str, int, int]] = []
        for member in self._core.state.living():
            station = self._crew.station(member.boot.agent)
            if station.handle is None or station.status is None or not rests(station.status):
                return None
            try:
                status = await station.handle.state()
            except Unreachable:
                return None
            station.status = status
            if not rests(status):
                return None
            marks.append((status.agent, status.incarnation, status.turn))
        return marks


def rests(status: AgentStatus) -> bool:
    return status.state in ("idle", "failed") and status.unread == 0
