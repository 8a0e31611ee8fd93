"""What a launch decided, once: written into the run's directory, read by every incarnation of the team."""

from __future__ import annotations

from typing import Literal

from retinue.agents.boot import AgentBoot, AgentLimits
from retinue.agents.definition import AgentDefinition
from retinue.agents.model.messages import Wire
from retinue.orchestrator.mcp.servers import StdioServer
from retinue.tools.extension.skills.book import Skill
from retinue.tools.ports import TaskView
from retinue.tools.settings.model import NO_SETTINGS, Settings
from retinue.tools.shell.sandbox.policy import Network
from retinue.tools.shell.sandbox.result import Probe

NO_PROBE = Probe(mechanism=None, why=("nobody has looked",))


class CheckCommand(Wire):
    """A command whose exit code 0 means yes."""

    command: str
    timeout_s: float


class MemberSandbox(Wire):
    """What the commands of one agent may reach, besides what all may. Real paths."""

    network: Network = "off"
    hidden: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    auto_allow: bool = False


class SandboxPlan(Wire):
    """How the commands of a run are confined, as it was found out at the launch: no process decides it anew.

    state             `off`: the spec says so. `broken`: no mechanism works on this machine, for the reason `why`
    probe             what was found out about this machine's mechanisms
    private           what no command may see
    borrowed          what is read where it lies: objects of the user's that repositories borrow, environments on PATH
    excluded          commands of agents that run outside
    allow_unconfined  agents may ask to leave it
    team              for checks, which run in nobody's name
    members           by name in the spec
    """

    state: Literal["on", "off", "broken"] = "off"
    why: str = ""
    probe: Probe = NO_PROBE
    private: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    allow_unconfined: bool = False
    team: MemberSandbox = MemberSandbox()
    members: dict[str, MemberSandbox] = {}


class LaunchPlan(Wire):
    """The spec, resolved against one repository at one moment. Holds no secret: those lie in the run's env file.

    day        the date of the launch: what agents are told, and the same for their whole life
    prompts    what each member is told first, by name
    done_when  checks by task id
    endpoints  where a model is reached, by its `PROVIDER:NAME`, if not at the provider's own address
    solo       one agent with a prompt: what it changed is its result, without a task
    settings   what settings files say, all together
    definitions  kinds of agents besides the built-in ones, or in the place of one
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
    sandbox: SandboxPlan = SandboxPlan()
    mcp: tuple[StdioServer, ...] = ()
    skills: tuple[Skill, ...] = ()
    settings: Settings = NO_SETTINGS
    definitions: dict[str, AgentDefinition] = {}
    script_folder: str
    locks_dir: str

    @property
    def has_depot(self) -> bool:
        return any(m.workspace.isolation == "worktree" for m in self.members)
