"""Bubblewrap: from a plan to its arguments. Pure.

The command is process 2 of a pid namespace that dies with the program that started it, has no capability and can get
none, sees a /proc and a /dev of its own, and of the file system what the plan says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from retinue.tools.shell.sandbox.plan import Mount, Plan

Form = Literal["no further namespaces", "own user namespace", "no user namespace"]
"""What the machine's bubblewrap can do about user namespaces, the strictest first.

`no user namespace` is for root on machines without them; bubblewrap without rights needs one.
"""
FORMS: tuple[Form, ...] = ("no further namespaces", "own user namespace", "no user namespace")

NOTHING = Path(__file__).with_name("nothing")
"""An empty file: what is read of a hidden file."""

SHELL = Path("/bin/sh")

LINGER = """
trap : TERM
exec 3>&2 2>/dev/null
count() { set -- /proc/[0-9]*; found=$#; }
count
alone=$found
(exec "$@" 2>&3 3>&-)
status=$?
left=20
while [ $left -gt 0 ]; do
  count
  [ $found -le $alone ] && break
  sleep 0.01
  left=$((left - 1))
done
exit $status
"""
"""Leaves 0.2 s to what a command has left behind and what ends by itself, as the keeper does outside.

Bubblewrap kills at once what is left, and with it the reader of `> >(…)` before it has written.
"""

_USER: dict[Form, tuple[str, ...]] = {
    "no further namespaces": ("--unshare-user", "--disable-userns"),
    "own user namespace": ("--unshare-user",),
    "no user namespace": (),
}


def arguments(
    plan: Plan,
    *,
    scratch: Path,
    share_network: bool,
    form: Form,
    program: Path,
    launcher: Sequence[str],
    argv: Sequence[str],
) -> list[str]:
    """The whole command line that runs `argv`, `launcher` before it; the working directory is kept.

    /proc is mounted read-only: as root the command owns the kernel's settings below /proc/sys, and no capability is
    asked for by them.
    """
    spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not share_network:
        spaces.append("--unshare-net")
    return [
        str(program),
        *spaces,
        *_USER[form],
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"),
        *(word for mount in plan.mounts for word in _words(mount, scratch)),
        *(word for mount in plan.mounts for word in _closed(mount)),
        *("--", *launcher, str(SHELL), "-c", LINGER, "sh"),
        *argv,
    ]


def _words(mount: Mount, scratch: Path) -> Iterator[str]:
    path = str(mount.path)
    match mount.how:
        case "writable":
            yield from ("--bind", path, path)
        case "readable":
            yield from ("--ro-bind", path, path)
        case "scratch":
            yield from ("--bind", str(scratch), path)
        case "private":
            yield from ("--perms", "0755", "--tmpfs", path)
        case "hidden" if mount.kind == "file":
            yield from ("--ro-bind", str(NOTHING), path)
        case "hidden":
            yield from ("--perms", "0555", "--tmpfs", path)


def _closed(mount: Mount) -> Iterator[str]:
    """A hollow folder takes the mounts below it first."""
    if mount.how == "hidden" and mount.kind == "folder":
        yield from ("--remount-ro", str(mount.path))
