"""Which paths may be read unasked, and where a command runs after a `cd`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatch

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request

LINKS = {"/home/me/tree/out": "/etc", "/home/me/tree/key": "/home/me/.ssh/id", "/home/me/tree/in": "/home/me/tree/src"}


def real(path: str) -> str:
    for link, target in LINKS.items():
        if path == link or path.startswith(f"{link}/"):
            return target + path[len(link) :]
    return path


def expand(pattern: str) -> Iterable[str]:
    found = ("out/passwd", "out", "key", "a", "-r")
    return [path for path in (f"/home/me/tree/{name}" for name in found) if fnmatch(path, pattern)]


def outcome(command: str, allowed: tuple[str, ...] = ()) -> str:
    return analyse(Request(command, "/home/me/tree", "/home/me", allowed=allowed, real=real, expand=expand)).outcome


@pytest.mark.parametrize(
    "command",
    [
        "cat a ./b src/../c /home/me/tree/d",
        "cat ~/tree/a",
        "cat ../tree/a",
        "cat ..a ...",
        "cat in/a",
        "cat s*/a",
        "cat a*",
        "cat [!ko-]*",
        "echo *",
        "echo src/*.py",
        "cat b/*",
        "cat -- -a",
        "cat -",
        "cat /dev/null",
        "cd src && cat ../a",
        "cd src && cd .. && ls",
        "cd src; ls",
        "cd /home/me/tree && git status",
        "cd ./ && git log",
        "cd src && ls 2>/dev/null",
        "cd src 2>/dev/null && ls",
        "LANG=C cd src && ls",
    ],
)
def test_paths_inside_are_free_to_read(command: str) -> None:
    assert outcome(command) == "read-only"


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/passwd",
        "cat ../a",
        "cat src/../../a",
        "cat ~/.ssh/id",
        "cat ~root/a",
        "cat /home/me/tree-two/a",
        "cat /home/me/treetop",
        "cat key",
        "cat out/passwd",
        "cat ./src/../out/x",
        "cat o*/passwd",
        "cat o*",
        "cat k?y",
        "cat [^a]*",
        "cat [[:lower:]]ey",
        "cat '[k]'*",
        "cat \\[k]*",
        "ls -l *",
        "wc ?r",
        "cd o* && cat passwd",
        "echo /etc/*",
        "echo o*/pass*",
        "seq 1 ../*",
        "test -n ~/.ssh/*",
        "cat ../*",
        "cat .*",
        "cat a/*/../../../x",
        "cat $X",
        "cat {a,/etc/b}",
        "cat /dev/tcp/h/1",
        "ls -- /etc",
        "grep -f/etc/x a",
        "grep --file=../x a",
        "cd .. && ls",
        "cd && ls",
        "cd - && ls",
        "cd $X && ls",
        "cd a b && ls",
        "cd src; cat ../../x",
        "cd src; cd ..; ls",
        "cd nope || cd /etc; cat x",
        "cd src && git status",
        "cd src && ls && git status",
        "cd src && ls > x",
        "cd src | ls",
        "command cd / && ls",
        "pushd src && ls",
        "cd out && ls",
        "cd src && cat ../../x",
    ],
)
def test_paths_that_lead_out_are_asked_about(command: str) -> None:
    assert outcome(command) == "ask"


def test_further_directories_may_be_allowed() -> None:
    assert outcome("cat /data/a") == "ask"
    assert outcome("cat /data/a", ("/data",)) == "read-only"
    assert outcome("cd /data && ls", ("/data",)) == "read-only"
    assert outcome("cat /database/a", ("/data",)) == "ask"
