"""The team spec as pydantic models: every key with its type, its default and its meaning.

A model built here has the right shape; whether its parts fit together is decided in check.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from retinue.orchestrator.spec.fields import (
    MODEL_USE_PATTERN,
    NAME_PATTERN,
    Base,
    BaseUrl,
    Branch,
    Commands,
    Count,
    Definition,
    Duration,
    EnvName,
    EnvValue,
    Mode,
    ModelUse,
    Name,
    Replicas,
    ShortForm,
    TaskId,
    Text,
    Texts,
)
from retinue.orchestrator.spec.languages import LanguageSpec
from retinue.orchestrator.spec.limits import AgentLimits, TeamLimits
from retinue.orchestrator.spec.mcp import McpServerSpec
from retinue.orchestrator.spec.part import SpecPart
from retinue.orchestrator.spec.sandbox import AgentSandbox, SandboxSpec, confined
from retinue.orchestrator.spec.web import WebSpec
from retinue.tools.errors import SpecError

Role = Literal["lead", "teammate"]
Env = dict[EnvName, EnvValue]


class ModelSpec(SpecPart):
    """A model: `PROVIDER:NAME`, or a mapping with that in `use` and the options."""

    use: ModelUse
    """`anthropic:NAME`, `script:FILE` (a scripted model) or `replay:RUN` (a recording of an earlier run)."""

    base_url: BaseUrl | None = None
    """Another server that speaks the Messages API. Only with anthropic."""

    max_output_tokens: Count | None = None
    """The most that one answer of the model may hold."""

    @property
    def provider(self) -> str:
        return self.use.partition(":")[0]

    @property
    def name(self) -> str:
        """The model's name, the script's file or the run's id."""
        return self.use.partition(":")[2]


def _model_mapping(value: object) -> object:
    return {"use": value} if isinstance(value, str) else value


ModelChoice = Annotated[
    ModelSpec, BeforeValidator(_model_mapping), ShortForm({"type": "string", "pattern": MODEL_USE_PATTERN})
]


class RepoSpec(SpecPart):
    """The repository that the team works in."""

    path: Text = "."
    """A folder inside a git repository; relative to where `retinue` is called."""

    base: Base = "head"
    """Where the work starts: `head`, a branch, tag or commit, or `worktree` (with what is not committed yet)."""

    setup: Texts = ()
    """Commands that prepare each new worktree, in order."""

    setup_timeout: Duration = 600.0
    """The most that each of them may take."""


class Permissions(SpecPart):
    """What agents may do. Deny comes before ask, ask before allow, the mode decides the rest."""

    mode: Mode = "default"
    """Without a rule: `default` asks, `acceptEdits` allows edits, `plan` only reads, `dontAsk` denies,
    `bypassPermissions` allows. When not given: what settings files say."""

    allow: Texts = ()
    """Rules `Tool` or `Tool(content)`, as in `Read` or `Bash(make test)`."""

    ask: Texts = ()
    """Rules for what has to be asked first."""

    deny: Texts = ()
    """Rules for what is never done."""

    on_ask: Literal["deny"] = "deny"
    """What happens to a question: `deny` answers no at once."""


class AgentPermissions(SpecPart):
    """Of one agent: its rules are added to the team's, its mode takes the place of the team's."""

    mode: Mode | None = None
    """The team's mode when not given."""

    allow: Texts = ()
    """Rules that are added to the team's."""

    ask: Texts = ()
    """Rules that are added to the team's."""

    deny: Texts = ()
    """Rules that are added to the team's."""

    on_ask: Literal["deny"] | None = None
    """The team's when not given."""


class ToolsSpec(SpecPart):
    """Which tools an agent's model sees, by name or wildcard, as in `Task*`."""

    allow: Texts | None = None
    """Only these. All tools of the definition when not given."""

    deny: Texts = ()
    """Without these."""

    simple: bool = False
    """The simple mode: Bash, Read and Edit only; with `repl` the REPL instead."""

    repl: bool = False
    """Tools that the REPL wraps are reached through it alone."""

    embedded_search: bool = False
    """The shell has a search of its own: without Glob and Grep."""

    loading: Literal["auto", "reference", "client", "all"] = "auto"
    """How the model gets tools that it first has to search for: `auto` is what its provider can do. `reference`: the
    provider keeps them from the model until they are found. `client`: they are sent from then on. `all`: nothing is
    searched for."""

    strict: bool = False
    """The provider holds the model to the schemas of its calls."""


class AgentSpec(SpecPart):
    """One agent, or several that differ only in their name."""

    definition: Definition = "general-purpose"
    """A built-in kind of agent, or the path of a Markdown file with front matter, relative to the spec."""

    role: Role | None = None
    """`lead` or `teammate`. An agent with the definition `lead` is the lead, all others are teammates."""

    description: Text | None = None
    """What the others are told about it. The definition's when not given."""

    prompt: Text | None = None
    """What it is told, besides its definition. `${...}` stays as it is."""

    model: ModelChoice | None = None
    """The team's model when not given."""

    replicas: Replicas = 1
    """How many. Above 1 they are named `NAME-1`, `NAME-2` and so on."""

    isolation: Literal["worktree", "none"] = "worktree"
    """`worktree`: its own worktree and branch. `none`: it writes in your checkout, and nothing is merged."""

    display: Literal["none"] = "none"
    """Where its screen is shown."""

    tools: ToolsSpec = ToolsSpec()
    """Which tools it has."""

    permissions: AgentPermissions = AgentPermissions()
    """What it may do, besides the team's permissions."""

    sandbox: AgentSandbox = AgentSandbox()
    """What its commands may reach, besides what the team's may."""

    limits: AgentLimits = AgentLimits()
    """What it may use up."""

    env: Env = {}
    """Environment variables of its tools, added to the team's."""

    @property
    def effective_role(self) -> Role:
        return self.role or ("lead" if self.definition == "lead" else "teammate")


class DoneWhen(SpecPart):
    """A task's own check: a command, or a mapping with `command` and `timeout`."""

    command: Text
    """It has to end with exit code 0 in a checkout that holds the work."""

    timeout: Duration = 600.0
    """The most that it may take."""


def _done_mapping(value: object) -> object:
    return {"command": value} if isinstance(value, str) else value


DoneCheck = Annotated[DoneWhen, BeforeValidator(_done_mapping), ShortForm({"type": "string", "minLength": 1})]


class TaskSpec(SpecPart):
    """One task of the board that the team starts with."""

    id: TaskId = ""
    """How other tasks refer to it; `t1`, `t2` … by position when not given."""

    subject: Text
    """One line."""

    description: Text | None = None
    """All that whoever works on it has to know. `${...}` stays as it is."""

    owner: Text | None = None
    """The agent that works on it. Anyone may claim it when not given."""

    blocked_by: Texts = ()
    """Ids of tasks that have to be merged first."""

    done_when: DoneCheck | None = None
    """A command that has to succeed before the work is merged."""


class MergeSpec(SpecPart):
    """How finished work comes together."""

    into: Branch | None = None
    """The branch that gets the result. `retinue/RUN/result` when not given."""

    strategy: Literal["merge", "rebase", "none"] = "merge"
    """`none` leaves each agent's work on its own branch."""

    verify: Commands = ()
    """Commands that have to succeed on the merged state before it counts."""

    verify_timeout: Duration = 600.0
    """The most that each of them may take."""


@dataclass(frozen=True, slots=True)
class Member:
    """One agent of the team after `replicas` is spelled out and the team's defaults are filled in.

    `key` is its name in the spec; `index` counts the replicas from 1.
    """

    name: str
    key: str
    index: int
    role: Role
    model: ModelSpec
    permissions: Permissions
    sandbox: SandboxSpec
    env: Mapping[str, str]
    spec: AgentSpec


class TeamSpec(SpecPart):
    """A team of agents, its tasks, its rights and its limits."""

    version: Literal[1]
    """The version of this format: 1."""

    name: Name
    """The team's name; part of the ids of its runs."""

    description: Text | None = None
    """What the team is for."""

    repo: RepoSpec = RepoSpec()
    """Where the team works, and from which commit."""

    model: ModelChoice | None = None
    """The model of every agent that names none itself."""

    small_model: ModelChoice | None = None
    """The model of small questions beside a conversation, as about a page. Each agent's own when not given."""

    permissions: Permissions = Permissions()
    """What the agents may do."""

    sandbox: SandboxSpec = SandboxSpec()
    """What shell commands may reach."""

    mcp_servers: dict[Name, McpServerSpec] = {}
    """MCP servers by name: programs whose tools all agents get."""

    web: WebSpec = WebSpec()
    """What WebFetch and WebSearch reach. What the settings say when not given."""

    lsp: dict[Name, LanguageSpec] = {}
    """Language servers by name; they come before those of the settings."""

    agents: dict[str, AgentSpec] = Field(
        json_schema_extra={"minProperties": 1, "propertyNames": {"pattern": f"^{NAME_PATTERN}$"}}
    )
    """The agents by name."""

    tasks: tuple[TaskSpec, ...] = ()
    """The task board at the start."""

    merge: MergeSpec = MergeSpec()
    """How finished work is brought together and checked."""

    limits: TeamLimits = TeamLimits()
    """What the team may use up."""

    env: Env = {}
    """Environment variables of the agents' tools."""

    @field_validator("tasks")
    @classmethod
    def _number_tasks(cls, tasks: tuple[TaskSpec, ...]) -> tuple[TaskSpec, ...]:
        return tuple(
            task if task.id else task.model_copy(update={"id": f"t{number}"}) for number, task in enumerate(tasks, 1)
        )

    def names(self) -> tuple[tuple[str, str, int], ...]:
        """(name, key in the spec, number of the replica) of every agent, in the order of the spec."""
        return tuple(
            (key if agent.replicas == 1 else f"{key}-{index}", key, index)
            for key, agent in self.agents.items()
            for index in range(1, agent.replicas + 1)
        )

    def members(self) -> tuple[Member, ...]:
        """Every agent with the team's defaults filled in, in the order of the spec."""
        return tuple(self._member(name, key, index) for name, key, index in self.names())

    def _member(self, name: str, key: str, index: int) -> Member:
        agent = self.agents[key]
        model = agent.model or self.model
        if model is None:
            raise SpecError(f"agents.{key}: no model; write model: here or at the top of the spec")
        return Member(
            name=name,
            key=key,
            index=index,
            role=agent.effective_role,
            model=model,
            permissions=_joined(self.permissions, agent.permissions),
            sandbox=confined(self.sandbox, agent.sandbox),
            env={**self.env, **agent.env},
            spec=agent,
        )


def _joined(team: Permissions, agent: AgentPermissions) -> Permissions:
    return Permissions(
        mode=agent.mode or team.mode,
        allow=(*team.allow, *agent.allow),
        ask=(*team.ask, *agent.ask),
        deny=(*team.deny, *agent.deny),
        on_ask=agent.on_ask or team.on_ask,
    )
