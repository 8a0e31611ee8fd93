"""Texts that patterns with two ways to the same end would take minutes for, and trees too deep to be read in time."""

from __future__ import annotations

import time

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request, Rules

GROSS_MS = 500
TEXTS = (
    "$(" * 3_000 + "x" + ")" * 3_000,
    'ls "' + '$("' * 1_200 + '")' * 1_200 + '"',
    "echo '" + "${@(git" * 1_400,
    "git " * 2_000 + "$(x) commit",
    "cat " + "/proc/" * 1_600,
    "ls {" + "." * 9_900,
    "ls {" + "," * 9_900,
    'echo "' + "\n" * 9_900 + '"',
    "jq '" + '"\\' * 4_900 + "' a",
)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_is_read_over_and_over(text: str) -> None:
    taken: list[float] = []
    for _ in range(3):
        begun = time.process_time()
        assert analyse(Request(text, "/home/me/tree", "/home/me")).outcome != "allow"
        taken.append(time.process_time() - begun)
    assert min(taken) * 1000 < GROSS_MS


def test_what_is_forbidden_is_found_in_a_tree_too_deep() -> None:
    text = "$(" * 1_000 + "curl x" + ")" * 1_000
    assert analyse(Request(text, "/home/me/tree", "/home/me", rules=Rules(deny=("Bash(curl:*)",)))).outcome == "deny"
    hidden = "$(" * 1_000 + "rm -rf /" + ")" * 1_000
    assert analyse(Request(hidden, "/home/me/tree", "/home/me")).outcome == "hard-stop"
