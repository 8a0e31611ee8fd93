"""What `doctor` concludes from what it finds, each with a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from retinue.orchestrator.cli.doctor_checks import LATER_PARTS, Check, Ran, not_yet, run_checks
from retinue.orchestrator.cluster.own import ClusterStatus
from retinue.orchestrator.spec.vocabulary import LATER_TOOLS, NOT_SUPPORTED_YET
from retinue.tools.errors import EnvironmentProblem
from retinue.tools.registry.table import BASE_TOOLS
from retinue.tools.shell.sandbox.result import Probe

PROGRAMS = {
    "git": Ran(0, "git version 2.39.5\n"),
    "tmux": Ran(0, "tmux 3.3a\n"),
    "/v/bin/rg": Ran(0, "ripgrep 15.2.0 (rev 1)\n"),
}
CONFINES = Probe(mechanism="bubblewrap", program="/usr/bin/bwrap", version="bubblewrap 0.8.0")
FORBIDDEN = Probe(mechanism=None, why=("bubblewrap: No permissions to create new namespace. Allow them.",))
NO_LANDLOCK = Probe(mechanism=None, why=("Landlock: this kernel has none; use Linux 5.13 or later.",))
LANDLOCK = Probe(mechanism="landlock", gaps=("signals",), limits=("no /tmp of its own",))
RAY_RUNS = Ran(0, "2.60.0\n")
CLUSTER = ClusterStatus("0123abcd", "127.0.0.1:40001", 1.0, False, True, 7, 313_000_000, ())


@dataclass(frozen=True, slots=True)
class Puppet:
    platform: str = "linux"
    python: tuple[int, int, int] = (3, 11, 7)
    ray: Ran = RAY_RUNS
    programs: Mapping[str, Ran] = field(default_factory=lambda: PROGRAMS)
    rg: str = "/v/bin/rg"
    http: int | str = 200
    state: Path | EnvironmentProblem = Path("/home/ada/.local/state/retinue")
    can_write: bool = True
    network: str = ""
    files: int = 65_536
    no_port: str = ""
    withheld: str = ""
    search: str = ""
    servers: tuple[str, ...] = ()
    confines: tuple[Probe, Probe] = (CONFINES, LANDLOCK)
    running: tuple[ClusterStatus, ...] | EnvironmentProblem = ()
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list[tuple[str, Mapping[str, str]]])

    def ray_version(self) -> Ran:
        return self.ray

    def run(self, *command: str) -> Ran:
        return self.programs.get(command[0], Ran(None))

    def ripgrep(self) -> str:
        return self.rg

    def untrusted(self) -> str:
        return self.withheld

    def web_search(self) -> str:
        return self.search

    def finds(self, program: str) -> bool:
        return program in self.servers

    def sandboxes(self) -> Mapping[str, Probe]:
        return dict(zip(("bubblewrap", "landlock"), self.confines, strict=True))

    def answer(self, url: str, headers: Mapping[str, str]) -> int | str:
        self.asked.append((url, headers))
        return self.http

    def state_folder(self) -> Path:
        if isinstance(self.state, EnvironmentProblem):
            raise self.state
        return self.state

    def writable(self, folder: Path) -> bool:
        return self.can_write

    def network_filesystem(self, folder: Path) -> str:
        return self.network

    def open_file_limit(self) -> int:
        return self.files

    def loopback_port(self) -> str:
        return self.no_port

    def clusters(self) -> list[ClusterStatus]:
        if isinstance(self.running, EnvironmentProblem):
            raise self.running
        return list(self.running)


def checks_of(machine: Puppet, environ: Mapping[str, str] | None = None) -> dict[str, Check]:
    return {check.name: check for check in run_checks(machine, environ or {})}


def with_program(name: str, ran: Ran) -> Puppet:
    return Puppet(programs={**PROGRAMS, name: ran})


def test_on_a_good_machine_nothing_is_wrong_and_nothing_that_is_right_has_a_remedy() -> None:
    found = checks_of(Puppet(), {"ANTHROPIC_API_KEY": "sk-1"})
    assert [check for check in found.values() if check.ok is False] == []
    right = {name: check.found for name, check in found.items() if check.ok}
    assert right == {
        "system": "linux",
        "Python": "3.11.7",
        "Ray": "2.60.0",
        "git": "2.39.5",
        "ripgrep": "15.2.0",
        "state folder": "/home/ada/.local/state/retinue",
        "open files": "limit 65536",
        "open ports": "127.0.0.1 can be used",
        "model": "the Messages API answers and takes the key",
        "tmux": "3.3",
        "sandbox": "bubblewrap 0.8.0 confines commands",
        "trust": "nothing here waits for your trust",
    }
    assert not [check for check in found.values() if check.ok and check.remedy]


@pytest.mark.parametrize(
    ("machine", "name", "words", "remedy"),
    [
        (Puppet(platform="darwin"), "system", "darwin", "WSL 2"),
        (Puppet(python=(3, 10, 14)), "Python", "3.10.14", "3.11 or later"),
        (Puppet(ray=Ran(1, "Traceback …\nImportError: no libc")), "Ray", "ImportError: no libc", "fresh virtual"),
        (Puppet(ray=Ran(None)), "Ray", "no answer in time", "install retinue again"),
        (Puppet(ray=Ran(0, "2.61.0")), "Ray", "2.61.0", "needs Ray 2.60"),
        (with_program("git", Ran(0, "git version 2.37.9")), "git", "2.37.9", "git 2.38 or later"),
        (with_program("git", Ran(None)), "git", "not found", "git 2.38 or later"),
        (with_program("git", Ran(0, "git version next")), "git", "unknown", "git 2.38 or later"),
        (Puppet(rg=""), "ripgrep", "not found", "ripgrep"),
        (with_program("/v/bin/rg", Ran(126, "cannot execute")), "ripgrep", "fails: cannot execute", "ripgrep"),
        (Puppet(state=EnvironmentProblem("no HOME")), "state folder", "no HOME", "XDG_STATE_HOME"),
        (Puppet(network="nfs4"), "state folder", "nfs4", "local disk"),
        (Puppet(can_write=False), "state folder", "cannot be written", "XDG_STATE_HOME"),
        (Puppet(files=256), "open files", "256", "ulimit -n"),
        (Puppet(no_port="refused"), "open ports", "refused", "firewall"),
        (Puppet(running=EnvironmentProblem("no Ray")), "local cluster", "no Ray", "see the message"),
    ],
)
def test_what_keeps_a_run_from_working_is_said_with_what_to_do(
    machine: Puppet, name: str, words: str, remedy: str
) -> None:
    check = checks_of(machine)[name]
    assert check.ok is False
    assert words in check.found
    assert remedy in check.remedy


@pytest.mark.parametrize(
    ("machine", "name", "words"),
    [
        (with_program("tmux", Ran(None)), "tmux", "not found"),
        (with_program("tmux", Ran(0, "tmux 3.1c")), "tmux", "3.1"),
        (Puppet(confines=(FORBIDDEN, NO_LANDLOCK)), "sandbox", "every command of an agent is a question"),
        (Puppet(confines=(CONFINES, NO_LANDLOCK)), "landlock", "this kernel has none"),
        (Puppet(files=1024), "open files", "1024"),
    ],
)
def test_what_this_version_can_do_without_is_no_failure_but_has_a_remedy(
    machine: Puppet, name: str, words: str
) -> None:
    check = checks_of(machine)[name]
    assert check.ok is None
    assert words in check.found
    assert check.remedy


def sandbox_lines(*confines: Probe) -> list[tuple[str, bool | None, str]]:
    machine = Puppet(confines=(confines[0], confines[1]))
    wanted = ("sandbox", "bubblewrap", "landlock")
    return [(check.name, check.ok, check.found) for check in run_checks(machine, {}) if check.name in wanted]


def test_the_mechanism_that_works_is_named_with_what_it_leaves_open_and_what_the_others_lack() -> None:
    assert sandbox_lines(FORBIDDEN, LANDLOCK) == [
        ("sandbox", True, "landlock confines commands"),
        ("sandbox", None, "left open by landlock: signals"),
        ("sandbox", None, "in landlock: no /tmp of its own"),
        ("bubblewrap", None, "bubblewrap: No permissions to create new namespace. Allow them."),
    ]


def test_where_nothing_confines_every_mechanism_says_why() -> None:
    (first, *others) = sandbox_lines(FORBIDDEN, NO_LANDLOCK)
    assert first[:2] == ("sandbox", None)
    assert [line[2] for line in others] == [*FORBIDDEN.why, *NO_LANDLOCK.why]


def test_without_key_and_server_nothing_is_asked() -> None:
    machine = Puppet()
    check = checks_of(machine)["model"]
    assert (check.ok, machine.asked) == (None, [])
    assert "ANTHROPIC_API_KEY" in check.remedy


def test_the_key_goes_only_to_the_server_that_is_set() -> None:
    machine = Puppet()
    checks_of(machine, {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:8000/"})
    [(url, headers)] = machine.asked
    assert url == "http://127.0.0.1:8000/v1/models?limit=1"
    assert headers["authorization"] == "Bearer sk-1"


def test_a_server_without_a_key_is_asked_without_one() -> None:
    machine = Puppet()
    check = checks_of(machine, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8000"})["model"]
    assert check == Check("model", True, "the server at ANTHROPIC_BASE_URL answers")
    assert "authorization" not in machine.asked[0][1]


@pytest.mark.parametrize(
    ("answer", "ok", "words"),
    [
        (401, False, "refuses the key"),
        ("ConnectTimeout", False, "cannot be reached: ConnectTimeout"),
        (404, None, "HTTP 404"),
        (529, None, "HTTP 529"),
    ],
)
def test_an_answer_of_the_server_is_judged_and_the_key_never_shown(
    answer: int | str, ok: bool | None, words: str
) -> None:
    check = checks_of(Puppet(http=answer), {"ANTHROPIC_API_KEY": "sk-secret"})["model"]
    assert check.ok is ok
    assert words in check.found
    assert check.remedy
    assert "sk-secret" not in repr(check)


def test_a_running_cluster_is_shown_with_its_memory_and_how_to_end_it() -> None:
    both = (CLUSTER, replace(CLUSTER, key="89abcdef", current=False))
    check = checks_of(Puppet(running=both))["local cluster"]
    assert check.ok
    assert check.found == "2 running, at 127.0.0.1:40001, 626 MB"
    assert "retinue cluster stop" in check.remedy


def test_everything_that_a_spec_may_name_and_that_does_not_work_yet_is_listed() -> None:
    listed = list(not_yet())
    assert len({check.name for check in run_checks(Puppet(), {})}) == len(list(run_checks(Puppet(), {})))
    assert all(check.remedy for check in listed)
    assert len(listed) == len(LATER_PARTS) + len(NOT_SUPPORTED_YET)
    assert {check.found for check in listed} == {"not supported yet"}
    assert {check.ok for check in listed} == {None}
    assert all(row.remedy in {check.remedy for check in listed} for row in NOT_SUPPORTED_YET)


def test_without_a_web_search_it_is_said_how_to_set_one() -> None:
    check = checks_of(Puppet())["web search"]
    assert (check.ok, "no WebSearch" in check.found) == (None, True)
    assert check.remedy.startswith("write web.search in a spec or in the settings")
    there = checks_of(Puppet(search="an endpoint"))["web search"]
    assert (there.ok, there.found, there.remedy) == (True, "the settings set an endpoint", "")


def test_language_servers_on_the_search_path_are_named() -> None:
    found = checks_of(Puppet(servers=("pylsp", "gopls", "cat")))["language servers"]
    assert (found.ok, found.found) == (True, "pylsp (Python), gopls (Go)")
    without = checks_of(Puppet())["language servers"]
    assert (without.ok, "install one" in without.remedy) == (None, True)


def test_nothing_that_exists_is_called_later() -> None:
    assert not set(LATER_TOOLS) & {entry.name for entry in BASE_TOOLS}


def test_what_waits_for_trust_is_said_in_one_line_and_keeps_no_run_from_working() -> None:
    checks = {check.name: check for check in run_checks(Puppet(withheld=".claude/settings.json: 1 allow rule"), {})}
    assert (checks["trust"].ok, checks["trust"].found) == (None, ".claude/settings.json: 1 allow rule")
    assert "retinue trust" in checks["trust"].remedy
