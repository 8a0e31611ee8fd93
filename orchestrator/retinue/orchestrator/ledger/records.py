"""What the team writes into the ledger. Members, board, merge queue and budget are folds over these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from retinue.agents.boot import AgentBoot
from retinue.agents.model.messages import Wire
from retinue.agents.records import MailStored
from retinue.tools.ports import ChildOutcome, TaskAnswer, TaskView


class RunOpened(Wire):
    """Once per run. `base_sha` is what every worktree starts from; `tip` begins there."""

    kind: Literal["run_opened"] = "run_opened"
    run: str
    team: str
    repo: str
    base_kind: str
    base_sha: str
    result_ref: str
    strategy: Literal["merge", "rebase", "none"]
    usd: float | None
    requests: int | None
    tokens: int | None
    wall_s: float | None


class MemberAdded(Wire):
    """The whole boot of an agent but its environment, which may hold secrets and lies in a file of its own."""

    kind: Literal["member_added"] = "member_added"
    boot: AgentBoot


class IncarnationStarted(Wire):
    kind: Literal["incarnation_started"] = "incarnation_started"
    agent: str
    incarnation: int
    at: float


class AgentLost(Wire):
    """A process ended without being asked to. `again` says whether the team makes a next incarnation."""

    kind: Literal["agent_lost"] = "agent_lost"
    agent: str
    incarnation: int
    how: str
    again: bool


class AgentEnded(Wire):
    """The agent is done for good: a child that returned, a member that was stopped or given up."""

    kind: Literal["agent_ended"] = "agent_ended"
    agent: str
    why: str
    outcome: ChildOutcome | None = None


class TaskChanged(Wire):
    """The task as it is now. `key` and `answer` make the call that changed it repeatable."""

    kind: Literal["task_changed"] = "task_changed"
    task: TaskView
    by: str
    key: str = ""
    answer: TaskAnswer | None = None


class WorkSubmitted(Wire):
    kind: Literal["work_submitted"] = "work_submitted"
    task_id: str
    agent: str
    branch: str
    sha: str


class MergeIntended(Wire):
    """Before the tip moves: what it is, what it will be. After a restart the ref itself says whether it moved."""

    kind: Literal["merge_intended"] = "merge_intended"
    task_id: str
    tip: str
    candidate: str


class WorkMerged(Wire):
    """`changed` is false when the work was in the tip already."""

    kind: Literal["work_merged"] = "work_merged"
    task_id: str
    agent: str
    sha: str
    tip: str
    changed: bool


class WorkReturned(Wire):
    kind: Literal["work_returned"] = "work_returned"
    task_id: str
    agent: str
    sha: str
    reason: str
    output: str


class Reminded(Wire):
    """An owner ended its turn with the task open, and was told once more."""

    kind: Literal["reminded"] = "reminded"
    task_id: str
    agent: str


class BackgroundAsked(Wire):
    """Nothing is left to do but background tasks of this agent: it was asked whether anybody needs their end."""

    kind: Literal["background_asked"] = "background_asked"
    agent: str
    tasks: tuple[str, ...]


class BudgetSpent(Wire):
    """A limit of the run or of one agent is used up; `scope` is an agent id or `run`."""

    kind: Literal["budget_spent"] = "budget_spent"
    scope: str
    text: str


RunPhase = Literal["running", "draining", "stopped", "done", "failed"]


class PhaseChanged(Wire):
    """`stopped` can be resumed; `done` and `failed` are the end. `result` is the branch that holds the work, if any."""

    kind: Literal["phase_changed"] = "phase_changed"
    phase: RunPhase
    detail: str = ""
    result: str = ""


TeamRecord = Annotated[
    RunOpened
    | MemberAdded
    | IncarnationStarted
    | AgentLost
    | AgentEnded
    | TaskChanged
    | WorkSubmitted
    | MergeIntended
    | WorkMerged
    | WorkReturned
    | Reminded
    | BackgroundAsked
    | BudgetSpent
    | PhaseChanged
    | MailStored,
    Field(discriminator="kind"),
]
TEAM_RECORD: TypeAdapter[TeamRecord] = TypeAdapter(TeamRecord)
TEAM_WRITER = "team"
