"""From a spec and what works on this machine to how a run's commands are confined, and how that is said. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.spec.sandbox import SandboxSpec
from retinue.orchestrator.team.plan import MemberSandbox, SandboxPlan
from retinue.orchestrator.workspaces.confinement import (
    Ground,
    Terms,
    checkout_policy,
    checks_policy,
    worktree_policy,
)
from retinue.tools.errors import SpecError
from retinue.tools.shell.sandbox.policy import Network, SandboxPolicy, SandboxUse
from retinue.tools.shell.sandbox.result import Mechanism, Probe

CHECKS = "checks"
"""In whose name checks run: no agent's, whose ids all have a `~`."""

HOLDS_HOSTS: tuple[Mechanism, ...] = ("bubblewrap", "sandbox-exec")
"""Mechanisms that can hold commands to a list of hosts."""

PROTECTS_SINGLE_FILES: tuple[Mechanism, ...] = ("bubblewrap", "sandbox-exec")
"""Mechanisms that can protect something in a folder in which all else may be changed."""


@dataclass(frozen=True, slots=True)
class Sight:
    """How a launch sees the file system: what a path really is, and whether anything is there."""

    home: Path
    real: Callable[[Path], Path]
    exists: Callable[[Path], bool]


def plan_sandbox(
    spec: TeamSpec, probe: Probe, private: Iterable[Path], borrowed: Iterable[Path], repo: Path, sight: Sight
) -> SandboxPlan:
    """What a launch decides, once. A spec that wants a sandbox where none works gets `broken`, never `off`.

    SpecError: the mechanism that works here cannot do what the spec says.
    """
    if not spec.sandbox.enabled:
        return SandboxPlan(state="off", why="the spec says so")
    _refuse_hosts(spec, probe)
    members = {member.name: _member(member.sandbox, member.permissions.mode, sight) for member in spec.members()}
    open_places = [*(Path(place) for each in members.values() for place in each.writable), repo]
    hidden = dict.fromkeys(sight.real(place) for place in private)
    return SandboxPlan(
        state="on" if probe.mechanism is not None else "broken",
        why="" if probe.mechanism is not None else "; ".join(probe.why),
        probe=probe,
        private=tuple(str(place) for place in hidden if not _would_be_made(place, open_places, sight)),
        borrowed=tuple(str(sight.real(place)) for place in borrowed),
        excluded=spec.sandbox.excluded_commands,
        allow_unconfined=spec.sandbox.allow_unsandboxed,
        team=_member(spec.sandbox, spec.permissions.mode, sight),
        members=members,
    )


def _refuse_hosts(spec: TeamSpec, probe: Probe) -> None:
    if probe.mechanism is None or probe.mechanism in HOLDS_HOSTS:
        return
    said = [("sandbox.network", spec.sandbox.network)]
    said += [(f"agents.{key}.sandbox.network", agent.sandbox.network or "off") for key, agent in spec.agents.items()]
    for place, network in said:
        if isinstance(network, tuple):
            raise SpecError(
                f"{place}: {probe.mechanism}, which is what works on this machine, cannot hold a list of hosts; write "
                f"off or full, or have one of {', '.join(HOLDS_HOSTS)} installed (`retinue doctor` says what it lacks)"
            )


def _member(said: SandboxSpec, mode: str, sight: Sight) -> MemberSandbox:
    auto = said.auto_allow
    return MemberSandbox(
        network=said.network,
        hidden=_places(said.hidden, sight),
        writable=_places(said.writable, sight),
        # Where files may be edited unasked, a confined command can do no more; with all of the network it can tell.
        auto_allow=mode == "acceptEdits" and said.network != "full" if auto is None else auto,
    )


def _places(written: Iterable[str], sight: Sight) -> tuple[str, ...]:
    paths = (sight.home / text[2:] if text.startswith("~/") else Path(text) for text in written)
    return tuple(dict.fromkeys(str(sight.real(path)) for path in paths))


def _would_be_made(place: Path, open_places: Iterable[Path], sight: Sight) -> bool:
    """To hide what is not there, in a folder that commands may change, an empty folder would have to be put there."""
    return not sight.exists(place) and any(folder in place.parents for folder in open_places)


# --- for one agent, or for checks -------------------------------------------------------------------------------------


def use_of(plan: SandboxPlan, boot: AgentBoot) -> SandboxUse:
    """How the shell tool of an agent uses its sandbox."""
    return SandboxUse(
        state=plan.state,
        why=plan.why,
        auto_allow=_of(plan, boot).auto_allow,
        allow_unconfined=plan.allow_unconfined,
        excluded=plan.excluded,
    )


def agent_policy(plan: SandboxPlan, boot: AgentBoot) -> SandboxPolicy:
    """What the commands of an agent may reach; a sub-agent's, what its parent's may, with results of its own."""
    ground = _ground(plan, Path(boot.run_dir), Path(boot.repo))
    terms = _terms(_of(plan, boot))
    root = Path(boot.workspace.root)
    if boot.workspace.isolation == "none" or boot.workspace.git_dir is None:
        return checkout_policy(ground, boot.agent, root, terms)
    return worktree_policy(ground, boot.agent, root, Path(boot.workspace.git_dir), terms)


def policy_of_checks(plan: SandboxPlan, run: Path, repo: Path) -> SandboxPolicy:
    """What `done_when`, `verify`, and `setup` of the verify worktree may reach."""
    return checks_policy(_ground(plan, run, repo), CHECKS, _terms(plan.team))


def _of(plan: SandboxPlan, boot: AgentBoot) -> MemberSandbox:
    return plan.members.get(boot.member or boot.name, plan.team)


def _terms(said: MemberSandbox) -> Terms:
    return Terms(said.network, tuple(map(Path, said.hidden)), tuple(map(Path, said.writable)))


def _ground(plan: SandboxPlan, run: Path, repo: Path) -> Ground:
    fine = plan.probe.mechanism in PROTECTS_SINGLE_FILES
    return Ground(run, repo, tuple(map(Path, plan.borrowed)), tuple(map(Path, plan.private)), fine)


# --- in words ---------------------------------------------------------------------------------------------------------


def sandbox_text(plan: SandboxPlan) -> str:
    """One line for `up` and `plan`."""
    match plan.state:
        case "on":
            return f"{plan.probe.mechanism}, network {network_text(plan.team.network)}{_beyond(plan)}"
        case "off":
            return f"off, since {plan.why or 'nobody switched it on'}: commands run with all your rights"
        case "broken":
            return f"cannot start here ({plan.why}): every command of an agent is a question; see `retinue doctor`"


def network_text(network: Network) -> str:
    return network if isinstance(network, str) else f"to {', '.join(network)}"


def _beyond(plan: SandboxPlan) -> str:
    """What is looser than usual."""
    said = [f"{', '.join(plan.team.writable)} may be changed" if plan.team.writable else ""]
    said += [_apart(name, own, plan.team) for name, own in plan.members.items()]
    said += [f"outside of it: {', '.join(plan.excluded)}" if plan.excluded else ""]
    said += ["agents may ask to leave it" if plan.allow_unconfined else ""]
    return "".join(f"; {part}" for part in said if part)


def _apart(name: str, own: MemberSandbox, team: MemberSandbox) -> str:
    more = [place for place in own.writable if place not in team.writable]
    parts = [f"network {network_text(own.network)}"] if own.network != team.network else []
    parts += [f"{', '.join(more)} may be changed"] if more else []
    return f"{name}: {', '.join(parts)}" if parts else ""
