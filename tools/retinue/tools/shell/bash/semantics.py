"""Whether an exit code is a failure, by what the command means by it. Pure.

Until commands are analysed only a text that is one simple command is judged; everything else fails by any other code
than 0.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from retinue.tools.shell.bash.constants import EXIT_ONE_IS_NO_FAILURE

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OPERATOR = frozenset("();<>|&")
_NOT_SIMPLE = ("\n", "`", "$(", "${")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`meaning` is set when a code other than 0 is no failure."""

    failed: bool
    meaning: str = ""


def judge(command: str, exit_code: int) -> Verdict:
    if exit_code == 0:
        return Verdict(failed=False)
    meaning = EXIT_ONE_IS_NO_FAILURE.get(_name(command), "") if exit_code == 1 else ""
    return Verdict(failed=not meaning, meaning=meaning)


def _name(command: str) -> str:
    """The name of the only simple command in the text, with git's verb; empty when there may be more than one."""
    if any(mark in command for mark in _NOT_SIMPLE):
        return ""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return ""
    while words and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if not words or any(_is_operator(word) for word in words):
        return ""
    return f"git {words[1]}" if words[0] == "git" and len(words) > 1 else words[0]


def _is_operator(word: str) -> bool:
    """A quoted operator looks like a bare one here, which errs on the side of failure."""
    return bool(word) and set(word) <= _OPERATOR
