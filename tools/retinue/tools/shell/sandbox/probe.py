"""Which mechanism works on this machine: each is tried with a command that writes where it may and where it may not."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox import bubblewrap, landlock, landlocked, seatbelt
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.result import Mechanism, Probe

DEADLINE_S = 10.0

_GAPS_OF_BUBBLEWRAP = (
    "a server's socket in a readable folder can be talked to when it was made after the command had started, "
    "or by a name that is no whole path",
    "the keys of the kernel's session keyring can be used",
    "with network: full, every server of this machine's loopback and every abstract socket can be reached",
)


def probe(only: Mechanism | None = None, *, deadline_s: float = DEADLINE_S) -> Probe:
    """The best mechanism that works, or `only` that one. Blocks for as long as a few short commands take."""
    why: list[str] = []
    for mechanism, attempt in _TRIES.get(platform.system(), {}).items():
        if only not in (None, mechanism):
            continue
        found = attempt(deadline_s)
        why += found.why
        if found.mechanism is not None:
            return found.model_copy(update={"why": tuple(why)})
    return Probe(mechanism=None, why=tuple(why) or ("There is no mechanism for this system.",))


def _bubblewrap(deadline_s: float) -> Probe:
    program = shutil.which("bwrap")
    if program is None:
        return Probe(mechanism=None, why=("bubblewrap: no `bwrap` on the PATH; install the package bubblewrap.",))
    said = ""
    for form in bubblewrap.FORMS:
        found = Probe(mechanism="bubblewrap", program=program, form=form, gaps=_GAPS_OF_BUBBLEWRAP)
        said = refusal(found, deadline_s)
        if not said:
            return found.model_copy(update={"version": _version(program, deadline_s)})
    remedy = (
        "User namespaces may be forbidden here: look at the settings kernel.unprivileged_userns_clone, "
        "user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns, or at the container's options."
    )
    return Probe(mechanism=None, why=(f"bubblewrap: {said} {remedy}",))


def _landlock(deadline_s: float) -> Probe:
    abi = max(landlocked.abi(), 0)
    machine = platform.machine()
    if machine not in landlocked.FORBIDDEN_CALLS:
        return Probe(mechanism=None, why=(f"Landlock: no filter of system calls is known for {machine}.",))
    if abi < landlocked.LOWEST_ABI:
        said = f"the kernel has version {abi} of it" if abi else "the kernel has none, or has it switched off"
        remedy = f"version {landlocked.LOWEST_ABI} (Linux 6.12) is needed to keep signals inside"
        return Probe(mechanism=None, why=(f"Landlock: {said}; {remedy}.",))
    found = Probe(mechanism="landlock", version=f"Landlock {abi}", gaps=landlock.GAPS, limits=landlock.LIMITS)
    said = refusal(found, deadline_s)
    return Probe(mechanism=None, why=(f"Landlock: {said}",)) if said else found


def refusal(found: Probe, deadline_s: float) -> str:
    """Why a mechanism does not confine, empty when it does: what it says itself, or what was seen from outside."""
    with tempfile.TemporaryDirectory(prefix="retinue-probe-") as name:
        folder = Path(name).resolve()
        inside, outside, scratch = (folder / part for part in ("inside", "outside", "scratch"))
        for made in (inside, outside, scratch):
            made.mkdir()
        try:
            confined = confinement(SandboxPolicy(writable=(inside,), scratch=scratch), found)
            words = confined.wrap(["/bin/sh", "-c", 'echo x > "$1"; echo x > "$2"', "sh", str(inside), str(outside)])
            words[-2:] = [str(inside / "file"), str(outside / "file")]
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=deadline_s,
                cwd=inside,
                env={},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"a trivial command did not end within {deadline_s:g} s."
        except (OSError, EnvironmentProblem) as error:
            return f"{str(error).removesuffix('.')}."
        if (outside / "file").exists():
            return "a confined command could write outside of its folders."
        if not (inside / "file").exists():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return f"it does not start a command: {said[-1] if said else f'exit code {done.returncode}'}."
        return ""


def _sandbox_exec(deadline_s: float) -> Probe:
    if not seatbelt.PROGRAM.exists():
        return Probe(mechanism=None, why=(f"sandbox-exec: there is no {seatbelt.PROGRAM}.",))
    found = Probe(mechanism="sandbox-exec", program=str(seatbelt.PROGRAM), gaps=seatbelt.GAPS)
    said = refusal(found, deadline_s)
    return Probe(mechanism=None, why=(f"sandbox-exec: {said}",)) if said else found


def _version(program: str, deadline_s: float) -> str:
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=deadline_s,
            check=False,
            env={},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


_TRIES: dict[str, dict[Mechanism, Callable[[float], Probe]]] = {
    "Linux": {"bubblewrap": _bubblewrap, "landlock": _landlock},
    "Darwin": {"sandbox-exec": _sandbox_exec},
}
