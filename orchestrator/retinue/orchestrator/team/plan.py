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
    """The spec, resolved against one repository at one moment. Holds no secret: those lie in the run's env file.

    day        the date of the launch: what agents are told, and the same for their whole life
    prompts    what each member is told first, by name
    done_when  checks by task id
    endpoints  where a model is reached, by its `PROVIDER:NAME`, if not at the provider's own address
    solo       one agent with a prompt: what it changed is its result, without a task
    locks_dir  where the locks of workspaces lie, the same for all runs of a user on this machine
    """

    run: str
    team: str
    day: str
    repo: str
    base_kind: str
    base_sha: str
    strategy: str
    into: str | None
    into_sha: str | None = None
    members: tuple[AgentBoot, ...]
    prompts: dict[str, str] = {}
    tasks: tuple[TaskView, ...] = ()
    done_when: dict[str, CheckCommand] = {}
    verify: tuple[CheckCommand, ...] = ()
    setup: tuple[CheckCommand, ...] = ()
    limits: AgentLimits = AgentLimits()
    endpoints: dict[str, str] = {}
    solo: bool = False
    script_folder: str
    locks_dir: str

    @property
    def has_depot(self) -> bool:
        return any(m.workspace.isolation == "worktree" for m in self.members)
