"""What a launch decided, once: written into the run's directory, read by every incarnation of the team."""

from __future__ import annotations

from retinue.agents.boot import AgentBoot, AgentLimits
from retinue.agents.model.messages import Wire
from retinue.tools.ports import TaskView


class CheckCommand(Wire):
    """A command whose exit code 0 means yes."""

    command: str
    timeout_s: float


class LaunchPlan(Wire):
    """The spec, resolved against one repository at one moment. Holds no secret: values lie in the run's env file.

    Boots carry placeholders for what is known only when the Depot exists (worktree paths); `done_when` is by task id.
    """

    run: str
    team: str
    repo: str
    base_kind: str
    base_sha: str
    in_repository: bool
    strategy: str
    into: str | None
    members: tuple[AgentBoot, ...]
    tasks: tuple[TaskView, ...] = ()
    done_when: dict[str, CheckCommand] = {}
    verify: tuple[CheckCommand, ...] = ()
    setup: tuple[CheckCommand, ...] = ()
    limits: AgentLimits = AgentLimits()
    locks_dir: str
