"""What a command of `tools call` may reach and sees: as in a run, in the current folder instead of a workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.cluster.identity import default_base
from retinue.orchestrator.state.paths import state_root
from retinue.orchestrator.workspaces.confinement import PROTECTED_NAMES
from retinue.orchestrator.workspaces.private_places import Machine, private_places
from retinue.tools.ports import Confinement
from retinue.tools.shell.environment import GitIdentity, tool_environment
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import NO_SANDBOX, SandboxPolicy, SandboxUse
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Probe


@dataclass(frozen=True, slots=True)
class ToolGround:
    """The environment of a call's commands, how they are confined, and what a person should know of that."""

    env: Mapping[str, str]
    use: SandboxUse
    confinement: Confinement | None
    told: str


def ground_of(root: Path, folder: Path, given: Mapping[str, str], *, sandboxed: bool) -> ToolGround:
    """`folder` is the call's own and `given` what settings add to the environment."""
    scratch, config = (folder / "tmp").resolve(), (folder / "gitconfig").resolve()
    scratch.mkdir(mode=0o700)
    config.touch(mode=0o600)
    home = Path.home()
    env = tool_environment(
        os.environ,
        home=home,
        tmp=scratch,
        identity=GitIdentity("you", "you@call.retinue.invalid"),
        spec_env=given,
        git_config=config,
    )
    if not sandboxed:
        return ToolGround(env, NO_SANDBOX, None, "--no-sandbox: commands run with all your rights")
    found = probe()
    if found.mechanism is None:
        why = "; ".join(found.why)
        return ToolGround(env, SandboxUse(state="broken", why=why), None, "no sandbox works here: `retinue doctor`")
    policy = _policy(root.resolve(), scratch, config, private_places(_machine(home)), found)
    return ToolGround(env, SandboxUse(state="on"), confinement(policy, found), "")


def _machine(home: Path) -> Machine:
    return Machine(os.environ, home, os.getuid(), (state_root(os.environ), default_base(os.getuid())))


def _policy(root: Path, scratch: Path, config: Path, private: tuple[Path, ...], found: Probe) -> SandboxPolicy:
    fine = found.mechanism != "landlock"
    hidden = (place.resolve() for place in private)
    return SandboxPolicy(
        writable=(root,),
        scratch=scratch,
        readable=(config,),
        protected=tuple(root / name for name in PROTECTED_NAMES),
        hidden=tuple(
            dict.fromkeys(place for place in hidden if fine and (place.exists() or root not in place.parents))
        ),
    )
