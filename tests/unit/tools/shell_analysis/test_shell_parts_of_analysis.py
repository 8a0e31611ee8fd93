"""Sed scripts, wrappers, variables, and the table as data."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.environment import SAFE, is_assignment, is_safe, loads
from retinue.tools.shell.analysis.model import Request
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.reading import read
from retinue.tools.shell.analysis.sedscript import is_harmless
from retinue.tools.shell.analysis.table import EntryData, builtin_table, compile_table, extended
from retinue.tools.shell.analysis.wrappers import unwrap


@pytest.mark.parametrize(
    "script",
    [
        "5p",
        "1,10p",
        "1p;5p;10p",
        "$p",
        "10,$p",
        "/a/,/b/p",
        "/a/p",
        "1,+3p",
        "1d",
        "/^$/d",
        "10q",
        "=",
        "s/a/b/",
        "s/a/b/g",
        "s/a/b/gI",
        "s/a/b/2p",
        "s|a|b|",
        "s#a#b#",
        "s,a,b,",
        "s/a\\/b/c/",
        "s/[a-z]/x/",
        "s/w/e/",
        "1s/a/b/",
        "s/a/b/;s/c/d/",
        "y/abc/xyz/",
        "  p ; d ",
    ],
)
def test_sed_may_print_and_replace(script: str) -> None:
    assert is_harmless(script)


@pytest.mark.parametrize(
    "script",
    [
        "w x",
        "1w x",
        "s/a/b/w x",
        "s/a/b/e",
        "s/a/b/ge",
        "e",
        "1e x",
        "r x",
        "R x",
        "W x",
        "1!p",
        "$!N",
        "{p}",
        "1{p;q}",
        "a x",
        "i\\",
        "c x",
        "b",
        "t",
        ":a",
        "n",
        "N",
        "F",
        "z",
        "s\\a\\b\\",
        "sxaxbxw y",
        "saaba",
        "s/a/b",
        "s/a",
        "s",
        "s/é/b/",
        "p\nw x",
        "s/a/b\n/w x",
        "s/[/]/w x/",
        "p w x",
        "s/a/b/;w x",
        "y/a/b/w x",
    ],
)
def test_sed_may_do_nothing_else(script: str) -> None:
    assert not is_harmless(script)


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("timeout 5 ls", "ls"),
        ("timeout -k 1 -s KILL 5s ls -l", "ls -l"),
        ("timeout --signal=TERM --foreground 1.5m ls", "ls"),
        ("nice ls", "ls"),
        ("nice -n 5 ls", "ls"),
        ("nice -10 ls", "ls"),
        ("stdbuf -oL -e0 ls", "ls"),
        ("time -p ls", "ls"),
        ("nohup nice time ls", "ls"),
        ("command builtin ls", "ls"),
        ("command -v ls", "command -v ls"),
        ("timeout $T ls", "timeout $T ls"),
        ("timeout --unknown 5 ls", "timeout --unknown 5 ls"),
        ("timeout 5", "timeout 5"),
        ("sudo ls", "sudo ls"),
        ("env ls", "env ls"),
        ("npx ls", "npx ls"),
        ("nice --unknown ls", "nice --unknown ls"),
        ("stdbuf --unknown ls", "stdbuf --unknown ls"),
        ("nohup -x ls", "nohup -x ls"),
    ],
)
def test_only_known_wrappers_with_known_flags_are_looked_through(command: str, inner: str) -> None:
    (part,) = read(command).parts
    assert " ".join(word.raw for word in part.inner) == inner
    assert part.inner == unwrap(part.words)


def test_there_are_32_safe_variables() -> None:
    assert len(SAFE) == 32


@pytest.mark.parametrize("text", ["LANG=C", "NODE_ENV='a b'", "TZ=Asia/Tokyo", "RUST_LOG=debug", "NO_COLOR="])
def test_a_safe_variable_may_have_any_plain_value(text: str) -> None:
    assert is_safe(resolve(text))


@pytest.mark.parametrize(
    "text", ["FOO=1", "PATH=x", "LANG=$x", "LANG=`x`", "LANG+=x", "LANG[0]=x", "LANG=/x", "TZ=:x", "LANG=../x", "x"]
)
def test_any_other_variable_is_not_safe(text: str) -> None:
    assert not is_safe(resolve(text))


def test_variables_that_name_what_runs_are_known() -> None:
    for text in ("PATH=x", "LD_PRELOAD=x", "NODE_OPTIONS=x", "GIT_SSH_COMMAND=x", "PYTHONPATH=x", "IFS=x", "PAGER=x"):
        assert loads(resolve(text)), text
    assert not loads(resolve("FOO=1"))
    assert is_assignment("a[0]=1")
    assert not is_assignment("--a=1")


def test_every_entry_says_why_and_uses_a_known_rule() -> None:
    from retinue.tools.shell.analysis.arguments import SCANNED, UNSCANNED

    known = {*SCANNED, *UNSCANNED}
    for entry in builtin_table().values():
        assert entry.why, entry.name
        assert entry.args in known, entry.name


def test_settings_may_add_and_replace_entries() -> None:
    request = Request("mylister -a x", "/t", "/h")
    assert analyse(request).outcome == "ask"
    table = extended({"mylister": EntryData(why="lists", flags="a", args="paths")})
    assert analyse(request, table).outcome == "read-only"
    assert analyse(Request("mylister -b x", "/t", "/h"), table).outcome == "ask"
    assert analyse(Request("mylister /etc", "/t", "/h"), table).outcome == "ask"
    assert analyse(Request("ls", "/t", "/h"), table).outcome == "read-only"


def test_a_flag_that_is_written_in_no_known_way_is_refused() -> None:
    with pytest.raises(ValueError, match="is no flag of the read-only table"):
        compile_table({"x": EntryData(why="x", flags="--a=file")})
