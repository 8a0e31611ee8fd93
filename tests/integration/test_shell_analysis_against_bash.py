"""What the analysis calls read-only, run by bash: it starts nothing but what was reported, and writes nothing.

Every program in reach is a stand-in that only notes how it was called.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request, Verdict

READERS = (
    "ls -la src",
    "cat a.txt | grep -n 'x y' | head -5",
    "git log --oneline -5 && git status",
    "find . -name '*.py' | wc -l",
    'rg "a|b" src; pwd',
    "sed -n '1,5p' a.txt",
    "sort a.txt | uniq -c",
    "cd src && ls",
    'echo "it\'s" done',
    "LANG=C ls 2>/dev/null || true",
    "jq '.a' a.json",
    "test -f a.txt && cat a.txt",
    "timeout 5 ls",
    "diff a.txt b.txt",
)
PIECES = (
    *(
        " ",
        "\t",
        "\n",
        "\\\n",
        "\\ ",
        "'",
        '"',
        "''",
        '""',
        "\\",
        "\\\\",
        "#",
        " #",
        "\\#",
        "$",
        "`",
        "^",
        "%",
        "=",
        "!",
    ),
    *(
        ";",
        "&&",
        "||",
        "|",
        "|&",
        "&",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "*",
        "?",
        "~",
        "==\n",
        "=~\n",
        "\r",
        "\x0b",
        "\x0c",
    ),
    *("<", ">", " 2>/dev/null ", ">&2", "2>&1", "<<E\n", "\nE\n", "<<<", ">&-", " x ", " -- ", "é", "\u00a0", "${a}"),
    *(
        " pwned",
        ";pwned",
        "\npwned",
        "|pwned",
        "&pwned",
        "$(pwned)",
        "`pwned`",
        ">pwned",
        " -o pwned ",
        "X=1 ",
        "time ",
    ),
)
SEED, MUTANTS, WANTED = 20_240, 40_000, 250
NAMES = (
    "ls",
    "cat",
    "grep",
    "head",
    "git",
    "find",
    "wc",
    "rg",
    "sed",
    "sort",
    "uniq",
    "jq",
    "timeout",
    "diff",
    "pwned",
    "x",
)


def mutants() -> Iterator[str]:
    """Readers with a few odd pieces put in, taken out or joined: the same ones in every run."""
    rng = random.Random(SEED)
    for _ in range(MUTANTS):
        text = rng.choice(READERS)
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(text) + 1)
            if rng.random() < 0.75:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            else:
                text = text[:at] + text[at + rng.randrange(1, 4) :]
        yield text


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A tree to work in, and stand-ins for all programs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "calls").mkdir()
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / "a.txt").write_text("x\n")
    for name in NAMES:
        stand_in = tmp_path / "bin" / name
        stand_in.write_text(f'#!/bin/sh\nprintf "%s\\001" {name} "$@" > "$CALLS/$$"\n')
        stand_in.chmod(0o755)
    return tmp_path


def run(command: str, world: Path) -> list[tuple[str, ...]]:
    """Runs the command in bash and answers every call of a stand-in."""
    calls = world / "calls"
    subprocess.run(
        ["/bin/bash", "--norc", "-c", command.encode("utf-8", "surrogateescape")],
        cwd=world / "tree",
        env={"PATH": str(world / "bin"), "HOME": str(world), "CALLS": str(calls), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    found = [tuple(note.read_text(errors="surrogateescape").split("\x01")[:-1]) for note in sorted(calls.iterdir())]
    for note in calls.iterdir():
        note.unlink()
    return found


def was_reported(call: tuple[str, ...], verdict: Verdict) -> bool:
    """A glob may have become any names; the program and what is no glob must be as reported."""
    for part in verdict.parts:
        words = tuple(word.value for word in part.words)
        if words == call or (words[:1] == call[:1] and not all(word.literal for word in part.words)):
            return True
    return False


@pytest.mark.live
def test_bash_runs_no_more_than_the_analysis_reports(world: Path) -> None:
    tree = world / "tree"
    before = sorted(os.walk(tree))
    tried = called = 0
    for command in mutants():
        verdict = analyse(Request(command, str(tree), str(world)))
        if verdict.outcome != "read-only":
            continue
        tried += 1
        for call in run(command, world):
            called += 1
            assert was_reported(call, verdict), (command, call)
        assert sorted(os.walk(tree)) == before, command
        if tried == WANTED:
            break
    assert tried == WANTED
    assert called > WANTED / 2
