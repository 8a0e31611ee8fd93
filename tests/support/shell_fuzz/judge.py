"""Whether what a shell did with a command is what the analysis said that it would do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from retinue.tools.shell.analysis.model import Part, Verdict, Word
from support.shell_fuzz.scene import Scene, Traced
from support.shell_fuzz.trace import Act, acts

_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/sys/", "/dev/", "/proc/")
_OF_SYSTEM = frozenset(("/usr", "/dev", "/proc", "/sys", "/lib", "/bin"))
_CANARIES = frozenset(("/etc/hosts", "/etc/canary", "/etc/shadow", "/srv/canary"))
_FREE_WRITES = frozenset(("/dev/null", "/dev/tty"))
_HELPERS = {
    "egrep": {"grep", "egrep", "sh"},
    "fgrep": {"grep", "fgrep", "sh"},
    "zcat": {"gzip", "sh", "zcat"},
    "which": {"sh"},
    "tar": {"gzip", "bzip2", "xz"},
    "locale": {"gzip"},
    "diff3": {"diff"},
    "git submodule": {"git", "git-submodule", "basename", "sed", "uname", "sh", "gettext", "envsubst"},
    "lsb_release": {"lsb_release", "sh", "getopt", "cut", "tr", "sed", "cat", "grep"},
}
"""What programs of the table start themselves: parts of the system, whose words are not the command's."""
_OF_PROCESSES = frozenset(("ps", "pgrep", "w", "uptime", "pstree", "lsof", "ss", "netstat", "who"))
"""They look at every process, also where they then show little of it."""
_OF_PLACES = {"whereis": "/etc"}
"""Directories of the system that a program looks through for names."""
_TEMPORARY = frozenset(("tac", "sort"))
"""They put what does not fit into files of their own among the temporary ones, and remove those at once."""


class Fault(NamedTuple):
    """`kind` says which promise was broken, `what` how."""

    kind: str
    what: str


def faults(verdict: Verdict, traced: Traced, scene: Scene) -> list[Fault]:
    """All that a command did which was not reported or may not be done."""
    found = list(acts(traced.lines))
    ran = [act for act in found if act.kind == "exec"][1:]  # the first is the shell itself
    return list(dict.fromkeys((*_unreported(ran, verdict), *_touched(found, scene, _programs(verdict)))))


def _unreported(ran: Iterable[Act], verdict: Verdict) -> Iterator[Fault]:
    tails = [tail for part in verdict.parts for tail in tails_of(part)]
    called = {" ".join(word.value for word in tail[:count]) for tail in tails for count in (1, 2)}
    helpers = set[str]().union(*(_HELPERS.get(name, ()) for name in called))
    for act in ran:
        name = act.path.rsplit("/", 1)[-1]
        if not act.path.startswith(("/usr/", "/bin/", "/sbin/", "/lib")):
            yield Fault("exec", f"{act.path} is no program of the system")
        elif name not in helpers and not any(fits(tail, act.argv) for tail in tails):
            yield Fault("exec", f"{act.argv!r} was not reported")


def tails_of(part: Part) -> Iterator[Sequence[Word]]:
    """The part's command, and each command behind its wrappers."""
    behind = len(part.words) - len(part.inner)
    for at in range(behind + 1):
        if part.words[at:]:
            yield part.words[at:]
    if part.inner and part.inner[0].value == "xargs":
        rest = part.inner[1:]
        while rest and rest[0].value.startswith("-"):
            rest = rest[1:]
        if rest:
            yield [*rest, Word("*", "*", 2)]


def fits(tail: Sequence[Word], argv: Sequence[str]) -> bool:
    """Whether these arguments may come of these words. A glob may have become any, but the others stay in order."""
    if all(word.literal for word in tail):
        return [word.value for word in tail] == list(argv)
    if not argv or tail[0].value != argv[0]:
        return False
    rest = iter(argv[1:])
    return all(word.value in rest for word in tail[1:] if word.literal)


def _programs(verdict: Verdict) -> frozenset[str]:
    return frozenset(tail[0].value for part in verdict.parts for tail in tails_of(part))


def _touched(found: Iterable[Act], scene: Scene, programs: frozenset[str]) -> Iterator[Fault]:
    temporary = tuple(str(scene.root / "tmp" / program) for program in _TEMPORARY & programs)
    places = frozenset(folder for program, folder in _OF_PLACES.items() if program in programs)
    if "pwd" in programs:  # zsh finds its place by climbing
        places |= {str(folder) for folder in scene.project.parents}
    looks = not _OF_PROCESSES.isdisjoint(programs)
    for act in found:
        if act.path.startswith(temporary):
            continue
        if act.kind == "write" and act.path not in _FREE_WRITES:
            yield Fault("write", f"{act.call} of {act.path}")
        elif act.kind == "change":
            yield Fault("change", f"{act.call} of {act.path}")
        elif act.kind == "network":
            yield Fault("network", f"{act.call}: {act.path}")
        elif act.kind == "read" and (why := _outside(act.path, scene, looks, places)) is not None:
            yield Fault("read", f"{why}: {act.path}")


def _outside(path: str, scene: Scene, looks: bool, places: frozenset[str]) -> str | None:
    project = str(scene.project)
    if path == project or path.startswith(f"{project}/") or path in places:
        return None
    if path in _CANARIES or path.startswith(str(scene.root)):
        return None if path == str(scene.git_config) else "outside the working directory"
    if looks and (path == "/" or path.startswith("/proc/")):
        return None
    if path.endswith("environ"):
        return "the environment of a process"
    if path.startswith(_SYSTEM) or path in _OF_SYSTEM or (path.startswith("/etc/") and path not in _CANARIES):
        return None
    return "outside of all" if path.startswith("/") else None
