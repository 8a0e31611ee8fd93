"""How the team starts, reaches and stops agents, whatever they run on; and what agents may ask of the team.

Implemented in one process for tests (`local`) and over actors (`actors/`). The same scenes run on both.
"""

from __future__ import annotations

from typing import Protocol

from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.model.messages import Usage, Wire
from retinue.agents.ports import Reservation
from retinue.agents.records import TurnEnd
from retinue.orchestrator.team.board import Submission
from retinue.tools.errors import RetinueError
from retinue.tools.ports import ChildOutcome, ChildRequest, TaskAnswer, TaskChange, TaskDraft, TaskView
from retinue.tools.team.crew_ports import PeerView


class Unreachable(RetinueError):
    """A process did not answer in time or is gone; whether it did what was asked is unknown."""


class AgentOutcome(Wire):
    """How a process of an agent ended. `lost` means that nobody asked it to."""

    lost: bool
    how: str
    reason: TurnEnd | None = None
    text: str = ""


class AgentHandle(Protocol):
    """One incarnation. Every method has a deadline inside and raises `Unreachable` when the process did not answer."""

    async def deliver(self, envelope: Envelope) -> Receipt: ...
    async def state(self) -> AgentStatus: ...
    async def drain(self) -> None:
        """Finish the step in flight and end, resumably."""
        ...

    async def interrupt(self, reason: str) -> None:
        """Cancel the turn; every call gets a result; the agent is idle afterwards."""
        ...

    async def kill(self) -> None:
        """End the process and everything it started, now."""
        ...

    async def ended(self) -> AgentOutcome:
        """Wait for the end, however long; never raises but for cancellation."""
        ...


class AgentRuntime(Protocol):
    async def start(self, boot: AgentBoot) -> AgentHandle:
        """Make the process of this incarnation and let it begin."""
        ...

    async def find(self, agent: str, incarnation: int) -> AgentHandle | None:
        """The living process of this incarnation, if there is one."""
        ...


class Address(Wire):
    """Where mail for a name goes now; incarnation 0: no process at the moment, the team keeps the mail."""

    name: str
    agent: str
    incarnation: int


class Resolved(Wire):
    addresses: tuple[Address, ...] = ()
    refusal: str = ""


class ChildStarted(Wire):
    ok: bool
    agent: str = ""
    text: str = ""


class TeamApi(Protocol):
    """What agents ask of the team. `agent` is the caller's id; keys make repeated calls one call."""

    async def create_task(self, agent: str, key: str, draft: TaskDraft) -> TaskAnswer: ...
    async def update_task(
        self, agent: str, key: str, change: TaskChange, submission: Submission | None
    ) -> TaskAnswer: ...
    async def get_task(self, task_id: str) -> TaskView | None: ...
    async def list_tasks(self) -> tuple[TaskView, ...]: ...
    async def resolve(self, agent: str, to: str) -> Resolved: ...
    async def deliver(self, envelope: Envelope) -> Receipt: ...
    async def start_child(self, agent: str, key: str, request: ChildRequest) -> ChildStarted: ...
    async def await_child(self, child: str, wait_s: float) -> ChildOutcome | None: ...
    async def reserve(self, agent: str, step: int, model: str, tokens: int, settled: Usage) -> Reservation: ...
    async def reserve_side(self, agent: str, key: str, model: str, tokens: int) -> Reservation: ...
    async def settle_side(self, agent: str, key: str, model: str, used: Usage) -> None: ...
    async def report(self, status: AgentStatus) -> None: ...
    async def peers(self, agent: str) -> tuple[PeerView, ...]: ...
