"""The spec's part about the sandbox: what shell commands may reach."""

from __future__ import annotations

from retinue.orchestrator.spec.fields import Network, OpenPlaces, Places, Switch, Texts
from retinue.orchestrator.spec.part import SpecPart


class SandboxSpec(SpecPart):
    """What the shell commands of the team may reach: those of agents, and `setup`, `done_when` and `verify`."""

    enabled: Switch = True
    """`false`: commands run with all your rights, and only rules and modes say which."""

    network: Network = "off"
    """`off`, `full`, or a list of hosts, as in `[packages.example.net, "*.example.org"]`."""

    hidden: Places = ()
    """Files and folders that no command may read, besides your keys, credentials and all that is retinue's."""

    writable: OpenPlaces = ()
    """Folders that commands may change, besides the worktree and their temp folder."""

    auto_allow: Switch | None = None
    """Whether a confined command that no rule speaks of runs unasked. When not given: for agents in mode `acceptEdits`,
    unless their network is `full`."""

    excluded_commands: Texts = ()
    """Commands that run outside of the sandbox, by the rules for other commands: what stands in `Bash(...)`."""

    allow_unsandboxed: Switch = False
    """Whether an agent may ask to run a command outside of the sandbox (`dangerouslyDisableSandbox`)."""


class AgentSandbox(SpecPart):
    """Of one agent: its paths are added to the team's, its network takes the place of the team's."""

    network: Network | None = None
    """The team's when not given."""

    hidden: Places = ()
    """Files and folders that are added to the team's."""

    writable: OpenPlaces = ()
    """Folders that are added to the team's."""


def confined(team: SandboxSpec, agent: AgentSandbox) -> SandboxSpec:
    """The team's, with what is said of one agent."""
    return team.model_copy(
        update={
            "network": team.network if agent.network is None else agent.network,
            "hidden": (*team.hidden, *agent.hidden),
            "writable": (*team.writable, *agent.writable),
        }
    )
