"""Everything that one incarnation of an agent is told at its start. Nothing comes from its process's environment."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from retinue.agents.model.messages import Wire
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Source


class RuleSet(Wire):
    """Permission rules from one place, as written: `Tool` or `Tool(content)`. `base` is where `/path` in them starts;
    None: at the workspace.
    """

    source: Source = "spec"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    base: str | None = None


class Rights(Wire):
    """What an agent may do. A sub-agent gets its own and its parent's: both must allow."""

    mode: Mode = "default"
    rules: tuple[RuleSet, ...] = ()


ToolLoading = Literal["reference", "client", "all"]
"""How a model gets the definitions of deferred tools: its provider expands references to them; they are sent from when
they were asked for on; or nothing is deferred."""


class ToolFilter(Wire):
    """None allows all; wildcards as in `Task*`. The rest says in what manner the agent works.

    loading  what the model's provider can do about deferred tools
    strict   the provider holds the model to the schemas of its calls
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    simple: bool = False
    repl: bool = False
    embedded_search: bool = False
    loading: ToolLoading = "all"
    strict: bool = False


class AgentLimits(Wire):
    """None: no limit of its own. `requests` counts model requests."""

    requests: int | None = None
    tokens: int | None = None
    usd: float | None = None
    wall_s: float | None = None


class WorkspaceBoot(Wire):
    """Where the agent's file and shell tools act. `isolation: none` has no branch and no repository of its own."""

    root: str
    isolation: Literal["worktree", "none"]
    git_dir: str | None = None
    branch: str | None = None
    base_sha: str | None = None


class Peer(Wire):
    """One line of the roster that every agent's system prompt carries."""

    name: str
    role: Literal["lead", "teammate"]
    description: str


class AgentBoot(Wire):
    """`agent` is `name~n`, never reused; `incarnation` counts the processes of this one agent from 1.

    member              the name in the spec whose part of it counts for this agent: its own, or for a sub-agent its
                        ancestor's
    small_model         for small questions beside the conversation; empty: its own
    extra_dirs          folders beside the workspace that it may work in
    notes               what the repository and its user tell every agent, as in CLAUDE.md
    hooks               those of its definition, as they stand there, if it is trusted
    background_after_s  how long a command may block a turn before it goes on in the background; None: to its time-out
    """

    run: str
    team: str
    agent: str
    name: str
    incarnation: int
    role: Literal["lead", "teammate", "child"]
    parent: str | None = None
    depth: int = 0
    member: str = ""
    definition: str
    description: str
    prompt: str
    model: str
    small_model: str = ""
    max_tokens: int = 8_000
    roster: tuple[Peer, ...] = ()
    tools: ToolFilter = ToolFilter()
    rights: tuple[Rights, ...] = (Rights(),)
    limits: AgentLimits = AgentLimits()
    workspace: WorkspaceBoot
    repo: str
    run_dir: str
    extra_dirs: tuple[str, ...] = ()
    notes: str = ""
    background_after_s: float | None = None
    env: dict[str, str] = {}
    settings: dict[str, JsonValue] = {}
    hooks: dict[str, JsonValue] = {}


class AgentStatus(Wire):
    """State to be read, never mail: it starts no turn of anybody. `background` is what runs there: ids and titles;
    `alive` are tools with something that would be lost with the agent's process, such as variables. `asleep`: a call of
    Sleep is all that goes on.
    """

    agent: str
    incarnation: int
    state: Literal["starting", "working", "waiting", "idle", "stopped", "failed"]
    detail: str = ""
    turn: int = 0
    step: int = 0
    unread: int = 0
    background: dict[str, str] = {}
    alive: tuple[str, ...] = ()
    asleep: bool = False
