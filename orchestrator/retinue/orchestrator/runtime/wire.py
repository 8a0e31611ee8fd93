"""Questions to the team, as they cross between processes."""

from __future__ import annotations

from retinue.agents.model.messages import Usage, Wire
from retinue.tools.ports import ChildOutcome, ChildRequest, TaskChange, TaskDraft, TaskView
from retinue.tools.team.crew_ports import PeerView


class CreateAsk(Wire):
    agent: str
    key: str
    draft: TaskDraft


class UpdateAsk(Wire):
    """`branch` and `sha` are both given or both None."""

    agent: str
    key: str
    change: TaskChange
    branch: str | None = None
    sha: str | None = None


class TaskFound(Wire):
    task: TaskView | None


class TaskList(Wire):
    tasks: tuple[TaskView, ...]


class PeerList(Wire):
    peers: tuple[PeerView, ...]


class ResolveAsk(Wire):
    agent: str
    to: str


class ChildAsk(Wire):
    agent: str
    key: str
    request: ChildRequest


class ChildWait(Wire):
    child: str
    wait_s: float


class ChildFound(Wire):
    outcome: ChildOutcome | None


class ReserveAsk(Wire):
    agent: str
    step: int
    model: str
    tokens: int
    settled: Usage


class SideAsk(Wire):
    agent: str
    key: str
    model: str
    tokens: int


class SideUsed(Wire):
    agent: str
    key: str
    model: str
    used: Usage


class HumanMail(Wire):
    """Needs the run's control key."""

    key: str
    id: str
    to: str
    text: str


class Order(Wire):
    """What the human tells a running team to do. Needs the run's control key."""

    key: str
    what: str
    agent: str = ""


class OrderDone(Wire):
    """What became of it: a line per agent that was concerned."""

    ok: bool
    lines: tuple[str, ...] = ()
