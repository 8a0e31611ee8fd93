"""Rules with a command: an allow rule is the whole text, a deny or ask rule fits any reading of any part."""

from __future__ import annotations

import pytest

from retinue.tools.permissions.commands import allows, forbids, readings, runs_uncovered


@pytest.mark.parametrize(
    ("rule", "command", "fits"),
    [
        ("make test", "make test", True),
        ("make test", "  make test\n", True),
        ("make test", "make test && rm -rf x", False),
        ("make test", "make  test", False),
        ("make test", "make", False),
        ("make:*", "make test", False),
        ("make *", "make test", False),
        ("make *", "make *", False),
        ("ls \\*.py", "ls *.py", True),
        ("*", "anything", False),
    ],
)
def test_an_allow_rule_is_the_whole_text(rule: str, command: str, fits: bool) -> None:
    assert allows(rule, command) is fits


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -rf x", "rm -rf x"),
        ("rm:*", "rm"),
        ("rm:*", "rm -rf x"),
        ("rm *", "rm"),
        ("rm:*", "ls; rm x"),
        ("rm:*", "ls && rm x"),
        ("rm:*", "ls || rm x"),
        ("rm:*", "yes | rm x"),
        ("rm:*", "sleep 1 & rm x"),
        ("rm:*", "ls\nrm x"),
        ("rm:*", "(rm x)"),
        ("rm:*", "{ rm x; }"),
        ("rm:*", "echo $(rm x)"),
        ("rm:*", "echo `rm x`"),
        ("rm:*", "A=1 B='x y' rm x"),
        ("rm:*", "timeout -s KILL 5 rm x"),
        ("rm:*", "sudo rm x"),
        ("rm:*", "/bin/rm x"),
        ("rm:*", "r\\m x"),
        ("rm:*", "'rm' x"),
        ("rm:*", "bash -c 'rm x'"),
        ("rm:*", "if true; then rm x; fi"),
        ("rm:*", "find . -exec rm {} +"),
        ("rm:*", "xargs rm"),
        ("rm   -rf:*", "rm  -rf  x"),
        ("git push*", "git push origin main"),
        ("git * --force", "git push --force"),
        ("curl *", "curl x"),
        ("*secret*", "cat a/secret.txt"),
        ("rm:*", "x" * 10_001),
        ("rm:*", "nice " + "a " * 300),
    ],
)
def test_a_deny_rule_fits_every_part_and_every_disguise(rule: str, command: str) -> None:
    assert forbids(rule, command)


@pytest.mark.parametrize(
    ("rule", "command"),
    [("rm:*", "rmdir x"), ("rm:*", "ls"), ("rm:*", "echo rm"), ("git push:*", "git pull"), ("ls", "ls -l")],
)
def test_a_deny_rule_does_not_fit_other_commands(rule: str, command: str) -> None:
    assert not forbids(rule, command)


@pytest.mark.parametrize(
    "command",
    ["tmux ls", "retinue stop r", "x && ray stop", "sudo /usr/bin/tmux a", "python -m retinue ps", "y" * 10_001],
)
def test_commands_with_the_power_of_the_human_are_never_covered(command: str) -> None:
    assert runs_uncovered(command) is not None


def test_other_commands_may_be_covered() -> None:
    assert runs_uncovered("make test") is None


def test_quotes_without_end_are_read_in_time() -> None:
    assert readings("A=" + "'" * 4000 + '" x') is not None
