"""From a policy and what lies at its paths to the mounts that make it true. Pure.

Two things are less obvious. A mount holds its own name, but a folder above it can still be renamed and made anew, mount
and all; so every folder between a writable one and an entry below it is mounted on itself, since a mount point can
neither be renamed nor removed from inside. And whatever is missing there has to be made before anything is mounted, as
an empty folder: that git does not show, whatever the name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox.policy import SandboxPolicy

Kind = Literal["folder", "file", "absent", "blocked"]
"""`file` is anything that is no folder. `blocked`: a symbolic link, or something else than a folder on the way."""

Access = Literal["private", "writable", "readable", "protected", "hidden"]

How = Literal["writable", "readable", "hidden", "private", "scratch"]
"""`private` is an empty folder of the command's own, `scratch` the policy's scratch folder in another place."""

TEMP = Path("/tmp")
"""Here the scratch folder is seen once more, unless more is to be seen below: no mount point is made in it."""

PRIVATE = (TEMP, Path("/var/tmp"), Path("/run"))
"""Where sockets of other programs lie (docker, D-Bus, agents of keys, tmux), and files of everybody."""


@dataclass(frozen=True, slots=True)
class Mount:
    path: Path
    how: How
    kind: Literal["folder", "file"] = "folder"


@dataclass(frozen=True, slots=True)
class Plan:
    """`made` are the folders to be made first, each below `base`, a folder that the command may write."""

    mounts: tuple[Mount, ...]
    made: tuple[tuple[Path, Path], ...] = ()


def accesses(policy: SandboxPolicy) -> dict[Path, Access]:
    """What is said of each path; the strictest when it is named twice."""
    said: dict[Path, Access] = dict.fromkeys(PRIVATE, "private")
    said |= dict.fromkeys((*policy.writable, policy.scratch), "writable")
    said |= dict.fromkeys(policy.readable, "readable")
    said |= dict.fromkeys(policy.protected, "protected")
    said |= dict.fromkeys(policy.hidden, "hidden")
    return said


def paths_to_look_at(policy: SandboxPolicy) -> frozenset[Path]:
    """The paths of which `plan` has to know the kind: the entries, and the folders above each of them."""
    return frozenset(path for entry in accesses(policy) for path in (entry, *entry.parents))


def plan(policy: SandboxPolicy, kinds: Mapping[Path, Kind]) -> Plan:
    """Shallow mounts come first, so that deeper ones win."""
    if kinds[policy.scratch] != "folder":
        raise EnvironmentProblem(f"The sandbox has no temp folder: {policy.scratch} is not a folder. Make it, empty.")
    said: dict[Path, Access] = {}
    mounts: dict[Path, Mount] = {}
    made: list[tuple[Path, Path]] = []
    for path, access in sorted(accesses(policy).items(), key=lambda item: (len(item[0].parts), item[0])):
        above = nearest(path, said)
        outer = said[above] if above is not None else "readable"
        if not _matters(access, outer, kinds[path]):
            continue
        if kinds[path] == "blocked":
            raise EnvironmentProblem(blocked(path, access))
        if above is not None and outer == "writable":
            between = [folder for folder in path.parents if above in folder.parents]
            for folder in between:
                mounts.setdefault(folder, Mount(folder, "writable"))
            if kinds[path] == "absent":
                made.append((above, path))
        said[path] = access
        mounts[path] = _mount(path, access, kinds[path])
    if mounts.get(TEMP) == Mount(TEMP, "private") and not any(TEMP in path.parents for path in mounts):
        mounts[TEMP] = Mount(TEMP, "scratch")
    ordered = sorted(mounts.values(), key=lambda mount: (len(mount.path.parts), mount.path))
    return Plan(tuple(ordered), tuple(made))


def nearest(path: Path, entries: Container[Path]) -> Path | None:
    """The deepest of `entries` that holds `path`."""
    return next((folder for folder in path.parents if folder in entries), None)


def _matters(access: Access, outer: Access, kind: Kind) -> bool:
    """Whether an entry changes what the one around it says already."""
    if access == "private":
        return kind == "folder"
    if outer == "writable" and access in ("protected", "hidden"):
        return True
    if kind == "absent" or (kind == "blocked" and access == "hidden"):
        return False
    if access == "hidden":
        return outer not in ("hidden", "private")
    return access == "writable" or outer in ("writable", "hidden", "private")


def _mount(path: Path, access: Access, kind: Kind) -> Mount:
    shape: Literal["folder", "file"] = "file" if kind == "file" else "folder"
    if access == "private":
        return Mount(path, "private")
    if access == "protected":
        return Mount(path, "hidden" if kind == "absent" else "readable", shape)
    return Mount(path, access, shape)


def blocked(path: Path, access: Access) -> str:
    """What to say when an entry cannot be held."""
    return (
        f"The sandbox cannot hold {path} as {access}: it is a symbolic link, or there is no folder on the way to it. "
        "Put a file or a folder in its place, or take the entry out of the sandbox's settings."
    )
