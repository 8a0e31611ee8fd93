"""From a policy and what the machine can do to the `Confinement` of a shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import Confinement
from retinue.tools.shell.sandbox import bubblewrap, forward, ground, landlock, launch, seatbelt
from retinue.tools.shell.sandbox.plan import Plan, accesses, nearest, paths_to_look_at, plan
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.result import Probe

_RESOLVER = Path("/etc/resolv.conf")


def confinement(policy: SandboxPolicy, probe: Probe, proxy: Path | None = None) -> Confinement:
    """Raises `EnvironmentProblem` when nothing here can do what the policy says: then nothing may run.

    `proxy` is the socket of the `ProxyServer` that a list of hosts needs; it runs outside, as long as commands do.
    """
    if isinstance(policy.network, tuple) and proxy is None:
        raise EnvironmentProblem("A sandbox with a list of hosts needs the proxy that lets them through; it is not up.")
    match probe.mechanism:
        case "bubblewrap":
            return Bubblewrapped(policy, probe, proxy)
        case "landlock":
            if isinstance(policy.network, tuple):
                raise EnvironmentProblem(
                    "A list of hosts cannot be held by Landlock: say network: off or full, or install bubblewrap."
                )
            return Landlocked(policy)
        case "sandbox-exec":
            if isinstance(policy.network, tuple):
                raise EnvironmentProblem("A list of hosts cannot be held on this system: say network: off or full.")
            return Seatbelted(policy, Path(probe.program))
        case None:
            raise EnvironmentProblem(f"No sandbox works here. {' '.join(probe.why)}")


@dataclass(frozen=True, slots=True)
class Bubblewrapped:
    policy: SandboxPolicy
    probe: Probe
    proxy: Path | None = None

    @property
    def guarded(self) -> bool:
        return True

    @property
    def scratch(self) -> Path:
        return self.policy.scratch

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Looks at the policy's paths and makes the folders that are mounted upon."""
        policy = _with_names(_without_sockets(self.policy))
        mounts = mounts_for(launch.seen(policy, self.proxy) if self.proxy is not None else policy)
        ground.make(mounts)
        return bubblewrap.arguments(
            mounts,
            scratch=self.policy.scratch,
            share_network=self.policy.network == "full",
            form=self.probe.form or bubblewrap.FORMS[0],
            program=Path(self.probe.program),
            launcher=forward.launcher(self.proxy) if self.proxy is not None else (),
            argv=argv,
        )


@dataclass(frozen=True, slots=True)
class Landlocked:
    policy: SandboxPolicy

    @property
    def guarded(self) -> bool:
        return False

    @property
    def scratch(self) -> Path:
        return self.policy.scratch

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Lists the folders in which not everything is allowed."""
        policy = ground.resolved(launch.seen(_with_names(self.policy)))
        rules = landlock.rules(policy, ground.look(paths_to_look_at(policy)), ground.children)
        return landlock.arguments(rules, network=policy.network == "full", argv=argv)


@dataclass(frozen=True, slots=True)
class Seatbelted:
    policy: SandboxPolicy
    program: Path

    @property
    def guarded(self) -> bool:
        return False

    @property
    def scratch(self) -> Path:
        return self.policy.scratch

    def wrap(self, argv: Sequence[str]) -> list[str]:
        return [str(self.program), "-p", seatbelt.profile(ground.resolved(self.policy)), *argv]


def mounts_for(policy: SandboxPolicy) -> Plan:
    policy = ground.resolved(policy)
    return plan(policy, ground.look(paths_to_look_at(policy)))


def _without_sockets(policy: SandboxPolicy) -> SandboxPolicy:
    """With the sockets hidden that others listen on, but for those that are named and those in writable folders."""
    said = accesses(policy)
    found = [path for path in ground.sockets() if path not in said]
    other = (path for path in found if (above := nearest(path, said)) is None or said[above] != "writable")
    return replace(policy, hidden=(*policy.hidden, *other))


def _with_names(policy: SandboxPolicy) -> SandboxPolicy:
    """With the network there has to be the file that says who knows names; it may be a link to where all is hidden."""
    return replace(policy, readable=(*policy.readable, _RESOLVER.resolve())) if policy.network == "full" else policy
