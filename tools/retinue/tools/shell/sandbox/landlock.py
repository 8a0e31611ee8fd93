"""Landlock: from a policy to rules. Pure, but for the listing of folders, which is passed in.

Landlock can only allow, and what it allows for a folder it allows for all that is below. So what is hidden is left out
by allowing everything beside it, and what is protected by allowing changes beside it: in a folder with a protected
entry nothing can be made, renamed or removed, while what is in its other folders stays free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox.launch import program
from retinue.tools.shell.sandbox.plan import Access, Kind, accesses, blocked, nearest
from retinue.tools.shell.sandbox.policy import SandboxPolicy

Right = Literal["read", "change"]
Children = Callable[[Path], Iterable[tuple[Path, Kind]]]

DEVICES = tuple(Path("/dev") / name for name in ("null", "zero", "full", "random", "urandom", "tty"))
_CLOSED = (Path("/dev"),)
_HOLLOW: frozenset[Access] = frozenset({"hidden", "private"})

GAPS = (
    "modes, times and owners of files outside can be changed where you may, their content cannot",
    "that a hidden file exists, how large it is and when it was changed can be seen",
    "the names and arguments of all processes can be seen",
    "a process that hides from its keeper outlives it when the keeper is killed",
    "with network: full, every server of this machine's loopback can be reached",
)
LIMITS = (
    "no temp files in /tmp, only where TMPDIR says; no shared memory, no terminals of its own",
    "no sockets at all while the network is off, not even of its own loopback, and never Unix sockets",
    "folders above a hidden one cannot be listed",
    "in a folder with a protected entry, present or absent, nothing can be made, renamed or removed by commands",
)


@dataclass(frozen=True, slots=True)
class Rule:
    path: Path
    right: Right


def arguments(rules: Sequence[Rule], *, network: bool, argv: Sequence[str]) -> list[str]:
    """The whole command line that runs `argv` under `rules`."""
    words = [("r" if rule.right == "read" else "w") + str(rule.path) for rule in rules]
    return program("landlocked", ["full" if network else "off", *words, "--", *argv])


def rules(policy: SandboxPolicy, kinds: Mapping[Path, Kind], children: Children) -> tuple[Rule, ...]:
    said = _said(policy, kinds)
    if kinds[policy.scratch] != "folder":
        raise EnvironmentProblem(f"The sandbox has no temp folder: {policy.scratch} is not a folder. Make it, empty.")
    for path, access in said.items():
        if kinds.get(path) == "blocked" and access != "hidden" and _governed(path, said):
            raise EnvironmentProblem(blocked(path, access))
    devices = (Rule(path, "change") for path in DEVICES)
    return (*dict.fromkeys((*_Allowing(said, kinds, children).below(Path("/"), "readable"), *devices)),)


def _said(policy: SandboxPolicy, kinds: Mapping[Path, Kind]) -> dict[Path, Access]:
    """What is hidden and absent is nothing to leave out; where it could be made, it is held as what is protected is."""
    said: dict[Path, Access] = {Path("/"): "readable"}
    said |= accesses(policy)
    said |= dict.fromkeys(_CLOSED, "hidden")
    for path, access in tuple(said.items()):
        if access in _HOLLOW and kinds.get(path, "folder") not in ("folder", "file"):
            above = nearest(path, said)
            if above is not None and said[above] == "writable":
                said[path] = "protected"
            else:
                del said[path]
    return said


def _governed(path: Path, said: Mapping[Path, Access]) -> bool:
    """Whether what is around an entry is more than readable, so that the entry makes a difference."""
    above = nearest(path, said)
    return above is not None and said[above] not in ("readable", "protected")


@dataclass(frozen=True, slots=True)
class _Allowing:
    said: Mapping[Path, Access]
    kinds: Mapping[Path, Kind]
    children: Children

    def below(self, path: Path, access: Access) -> Iterator[Rule]:
        """The rules for `path`, of which `access` is said, and for all entries in it."""
        inner: dict[Path, Access] = {entry: said for entry, said in self.said.items() if path in entry.parents}
        own: Right | None = None if access in _HOLLOW else "change" if access == "writable" else "read"
        if own is None:
            yield from self._entries(inner)
        elif (own == "change" and set(inner.values()) - {"writable"}) or (
            own == "read" and _HOLLOW & set(inner.values())
        ):
            yield from self._beside(path, access, own, inner)
        else:
            yield Rule(path, own)
            yield from self._entries(inner)

    def _entries(self, inner: Mapping[Path, Access]) -> Iterator[Rule]:
        for entry, access in inner.items():
            if nearest(entry, inner) is None and self.kinds.get(entry) in ("folder", "file"):
                yield from self.below(entry, access)

    def _beside(self, path: Path, access: Access, own: Right, inner: Mapping[Path, Access]) -> Iterator[Rule]:
        """Everything in a folder for itself, without the folder's own right to be changed or listed."""
        if not _HOLLOW & set(inner.values()):
            yield Rule(path, "read")
        for child, kind in self.children(path):
            if kind not in ("folder", "file"):
                continue
            if child in self.said:
                yield from self.below(child, self.said[child])
            elif any(child in entry.parents for entry in inner):
                yield from self.below(child, access)
            else:
                yield Rule(child, own)
