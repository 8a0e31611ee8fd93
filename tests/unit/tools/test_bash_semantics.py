"""What an exit code means, as long as commands are not analysed."""

from __future__ import annotations

import pytest

from retinue.tools.shell.bash.semantics import judge


@pytest.mark.parametrize(
    "command",
    [
        "grep foo file",
        "grep 'a|b; c' file",
        "LC_ALL=C rg foo",
        "egrep foo *.py",
        "diff a b",
        "find . -name x",
        "test -f x",
        "[ -f x ]",
        "git diff --exit-code",
        "git grep foo",
    ],
)
def test_one_is_no_failure_for_commands_that_answer_with_it(command: str) -> None:
    verdict = judge(command, 1)
    assert not verdict.failed
    assert verdict.meaning
    assert judge(command, 2).failed
    assert judge(command, -9).failed


@pytest.mark.parametrize(
    "command",
    [
        "false",
        "pytest",
        "git commit",
        "git",
        "grep foo file; true",
        "grep foo file | cat",
        "true && grep foo file",
        "grep foo $(false)",
        "grep foo `false`",
        "grep foo\nfalse",
        "grep foo > out",
        "grep foo & true",
        "(grep foo)",
        "! grep foo file",
        "grep 'unclosed",
        "./grep foo",
        "X=1",
        "",
    ],
)
def test_everything_else_fails_by_any_other_code_than_zero(command: str) -> None:
    assert judge(command, 1).failed
    assert not judge(command, 0).failed
