from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox.bubblewrap import LINGER, NOTHING, Form, arguments
from retinue.tools.shell.sandbox.plan import Kind, Mount, Plan, paths_to_look_at, plan
from retinue.tools.shell.sandbox.policy import SandboxPolicy

WORK, SCRATCH = Path("/home/u/work"), Path("/home/u/scratch")


def kinds(policy: SandboxPolicy, **exceptions: Kind) -> dict[Path, Kind]:
    """Everything is a folder, but what is named by its last part."""
    return {path: exceptions.get(path.name.replace(".", "_"), "folder") for path in paths_to_look_at(policy)}


def command(mounts: Plan, *, form: Form = "no further namespaces", share_network: bool = False) -> list[str]:
    return arguments(
        mounts,
        scratch=SCRATCH,
        share_network=share_network,
        form=form,
        program=Path("/usr/bin/bwrap"),
        launcher=("/launch", "er"),
        argv=["/bin/bash", "-c", "true"],
    )


def test_the_whole_command_line_is_as_written_down() -> None:
    policy = SandboxPolicy(
        writable=(WORK,), scratch=SCRATCH, protected=(WORK / ".mcp.json",), hidden=(Path("/home/u/.ssh"), WORK / "key")
    )
    found = plan(policy, kinds(policy, _mcp_json="file", key="file"))
    assert command(found) == [
        *("/usr/bin/bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net"),
        *("--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"),
        *("--perms", "0755", "--tmpfs", "/run"),
        *("--bind", "/home/u/scratch", "/tmp"),
        *("--perms", "0755", "--tmpfs", "/var/tmp"),
        *("--perms", "0555", "--tmpfs", "/home/u/.ssh"),
        *("--bind", "/home/u/scratch", "/home/u/scratch"),
        *("--bind", "/home/u/work", "/home/u/work"),
        *("--ro-bind", "/home/u/work/.mcp.json", "/home/u/work/.mcp.json"),
        *("--ro-bind", str(NOTHING), "/home/u/work/key"),
        *("--remount-ro", "/home/u/.ssh"),
        *("--", "/launch", "er", "/bin/sh", "-c", LINGER, "sh", "/bin/bash", "-c", "true"),
    ]


def test_the_network_is_shared_only_when_asked_for() -> None:
    assert "--unshare-net" in command(Plan(()))
    assert "--unshare-net" not in command(Plan(()), share_network=True)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("no further namespaces", {"--unshare-user", "--disable-userns"}),
        ("own user namespace", {"--unshare-user"}),
        ("no user namespace", set[str]()),
    ],
)
def test_capabilities_are_dropped_whatever_can_be_done_about_user_namespaces(form: Form, words: set[str]) -> None:
    found = command(Plan(()), form=form)
    assert {"--unshare-user", "--disable-userns"} & set(found) == words
    assert found[found.index("--cap-drop") + 1] == "ALL"


def test_what_hides_a_file_is_empty_and_shipped() -> None:
    assert NOTHING.read_bytes() == b""


def test_what_is_absent_and_protected_is_made_and_mounted_over() -> None:
    policy = SandboxPolicy(writable=(WORK,), scratch=SCRATCH, protected=(WORK / "sub/.claude",))
    found = plan(policy, kinds(policy, _claude="absent"))
    assert found.made == ((WORK, WORK / "sub/.claude"),)
    assert Mount(WORK / "sub/.claude", "hidden") in found.mounts
    assert Mount(WORK / "sub", "writable") in found.mounts


def test_tmp_is_empty_where_an_entry_lies_below_it() -> None:
    policy = SandboxPolicy(writable=(Path("/tmp/work"),), scratch=SCRATCH)
    assert Mount(Path("/tmp"), "private") in plan(policy, kinds(policy)).mounts


def test_tmp_is_the_scratch_folder_where_all_below_it_is_hidden_anyway() -> None:
    policy = SandboxPolicy(writable=(WORK,), scratch=SCRATCH, hidden=(Path("/tmp/tmux-0"),))
    assert Mount(Path("/tmp"), "scratch") in plan(policy, kinds(policy)).mounts


@pytest.mark.parametrize("kind", ["blocked", "absent", "file"])
def test_a_scratch_folder_that_is_none_is_refused(kind: Kind) -> None:
    policy = SandboxPolicy(writable=(WORK,), scratch=SCRATCH)
    with pytest.raises(EnvironmentProblem, match="/home/u/scratch is not a folder"):
        plan(policy, kinds(policy, scratch=kind))


LINK = (WORK / "x",)


@pytest.mark.parametrize(
    "policy",
    [
        SandboxPolicy(writable=(WORK, *LINK), scratch=SCRATCH),
        SandboxPolicy(writable=(WORK,), scratch=SCRATCH, readable=LINK),
        SandboxPolicy(writable=(WORK,), scratch=SCRATCH, protected=LINK),
        SandboxPolicy(writable=(WORK,), scratch=SCRATCH, hidden=LINK),
    ],
)
def test_a_link_in_a_writable_folder_is_refused(policy: SandboxPolicy) -> None:
    with pytest.raises(EnvironmentProblem, match=r"cannot hold /home/u/work/x .* symbolic link"):
        plan(policy, kinds(policy, x="blocked"))
