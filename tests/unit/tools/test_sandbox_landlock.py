from __future__ import annotations

import struct
from pathlib import Path

import pytest

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox import landlocked
from retinue.tools.shell.sandbox.landlock import DEVICES, Rule, arguments, rules
from retinue.tools.shell.sandbox.plan import Kind
from retinue.tools.shell.sandbox.policy import SandboxPolicy

FOLDERS = (
    "/",
    "/dev",
    "/etc",
    "/tmp",
    "/home",
    "/home/.ssh",
    "/home/work",
    "/home/work/.claude",
    "/home/work/src",
    "/scratch",
)
FILES = ("/dev/vda", "/home/file", "/home/work/own")
LINKS = ("/bin",)


def tree() -> dict[Path, Kind]:
    found: dict[Path, Kind] = dict.fromkeys(map(Path, FOLDERS), "folder")
    found |= dict.fromkeys(map(Path, FILES), "file")
    found |= dict.fromkeys(map(Path, LINKS), "blocked")
    return found


TREE = tree()
POLICY = SandboxPolicy(
    writable=(Path("/home/work"),),
    scratch=Path("/scratch"),
    protected=(Path("/home/work/.claude"), Path("/home/work/.mcp.json")),
    hidden=(Path("/home/.ssh"), Path("/home/none")),
)


def found(policy: SandboxPolicy, there: dict[Path, Kind]) -> set[tuple[str, str]]:
    def children(folder: Path) -> list[tuple[Path, Kind]]:
        return [(path, kind) for path, kind in there.items() if path.parent == folder and path != folder]

    kinds: dict[Path, Kind] = {path: "absent" for path in (*policy.protected, *policy.hidden, Path("/run"))}
    made = rules(policy, kinds | there, children)
    return {(str(rule.path), rule.right) for rule in made if rule.path not in DEVICES}


def test_everything_beside_the_hidden_is_read_and_beside_the_protected_changed() -> None:
    assert found(POLICY, TREE) == {
        ("/etc", "read"),
        ("/home/file", "read"),
        ("/home/work", "read"),
        ("/home/work/.claude", "read"),
        ("/home/work/own", "change"),
        ("/home/work/src", "change"),
        ("/scratch", "change"),
    }


def test_devices_are_named_one_by_one() -> None:
    made = rules(POLICY, {**TREE, **dict.fromkeys((*POLICY.protected, *POLICY.hidden), "absent")}, lambda _: [])
    assert {rule.path for rule in made if Path("/dev") in rule.path.parents} == set(DEVICES)


def test_a_link_in_a_writable_folder_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="symbolic link"):
        found(POLICY, {**TREE, Path("/home/work/.claude"): "blocked"})


def test_the_launcher_is_given_rules_and_then_the_command() -> None:
    made = (Rule(Path("/a b"), "read"), Rule(Path("/--"), "change"))
    words = arguments(made, network=False, argv=["/bin/bash", "-c", "echo --"])
    assert words[-7:] == ["off", "r/a b", "w/--", "--", "/bin/bash", "-c", "echo --"]


# --- the filter of system calls, run by a small machine of our own ---------------------------------------------------


def answer(code: bytes, number: int, architecture: int, *values: int) -> int:
    steps = list(struct.iter_unpack("HBBI", code))
    data = struct.pack("iIQ6Q", number, architecture, 0, *values, *[0] * (6 - len(values)))
    held, at = 0, 0
    while True:
        operation, when_true, when_false, value = steps[at]
        at += 1
        if operation == landlocked.LOAD:
            (held,) = struct.unpack_from("I", data, value)
        elif operation == landlocked.ANSWER:
            return value
        else:
            fits = held == value if operation == landlocked.EQUAL else held >= value
            at += when_true if fits else when_false


REFUSED = landlocked.REFUSE | 1


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("network", [False, True])
def test_the_filter_refuses_what_it_names_and_lets_the_rest(machine: str, network: bool) -> None:
    code = landlocked.filter_code(network, machine)
    architecture, socket_call, forbidden = landlocked.FORBIDDEN_CALLS[machine]
    others = landlocked.CALLS_ON_OTHERS[machine]
    for number in range(600):
        if number in forbidden:
            assert answer(code, number, architecture) == REFUSED
        elif number == socket_call:
            assert (answer(code, number, architecture, 2) == REFUSED) is not network
        else:
            assert answer(code, number, architecture) == landlocked.ALLOW
    for number, argument in others:
        of_another = [0] * argument + [77]
        assert answer(code, number, architecture, *of_another) == REFUSED
        assert answer(code, number, architecture, *[9] * argument, 0) == landlocked.ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_with_the_network_only_internet_sockets_are_let(machine: str) -> None:
    code = landlocked.filter_code(True, machine)
    architecture, socket_call, _ = landlocked.FORBIDDEN_CALLS[machine]
    let = {family for family in range(64) if answer(code, socket_call, architecture, family) == landlocked.ALLOW}
    assert let == {2, 10, 16}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_in_the_way_of_another_machine_are_refused(machine: str) -> None:
    code = landlocked.filter_code(True, machine)
    architecture, _, _ = landlocked.FORBIDDEN_CALLS[machine]
    assert answer(code, 1, 0x40000003) == landlocked.KILL
    assert answer(code, 0x40000000 + 41, architecture, 1) == REFUSED
