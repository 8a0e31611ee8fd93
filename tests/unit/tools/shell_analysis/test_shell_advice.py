"""What a person is told with the question: rules to offer, warnings, how a command is folded; and exit codes."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis.advice import display_class, suggested_rules, warnings_of
from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.exit_codes import is_error, meaning
from retinue.tools.shell.analysis.model import Request, Verdict
from retinue.tools.shell.analysis.reading import read


def verdict(command: str) -> Verdict:
    return analyse(Request(command, "/home/me/tree", "/home/me"))


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git commit -m 'x'", ["Bash(git commit:*)"]),
        ("cargo clippy --all", ["Bash(cargo clippy:*)"]),
        ("NODE_ENV=x npm run a", ["Bash(npm run:*)"]),
        ("timeout 5 make all", ["Bash(make all:*)"]),
        ("make all && make check", ["Bash(make all:*)", "Bash(make check:*)"]),
        ("make all && make all", ["Bash(make all:*)"]),
        ("make all | tail -3", ["Bash(make all:*)"]),
        ("cd src && make all", ["Bash(make all:*)"]),
        ("npm x <<'E'\na\nE", ["Bash(npm x:*)"]),
        ("rm -rf build", ["Bash(rm -rf build)"]),
        ("rm *.o", ["Bash(rm \\*.o)"]),
        ("mkdir build", ["Bash(mkdir build)"]),
        ("python3 a.py", ["Bash(python3 a.py)"]),
        ("python3 setup", ["Bash(python3 setup)"]),
        ("./run now", ["Bash(./run now)"]),
        ("kill 1", ["Bash(kill 1)"]),
        ("cat /etc/hosts", ["Bash(cat /etc/hosts)"]),
        ("ls", []),
        ("bash -c ls", None),
        ("sudo make all", None),
        ("env make all", None),
        ("xargs rm", None),
        ("eval x", None),
        ("ssh h ls", None),
        ("LD_PRELOAD=x make all", None),
        ("PATH=x make all", None),
        ("git -c a=b commit", None),
        ("make $X", None),
        ('make "$(x)"', None),
        ("make 'x", None),
        ("rm -rf ~", None),
        ("make all; bash x", None),
        ("a1 b; a2 b; a3 b; a4 b; a5 b; a6 b", None),
        ("retinue land x", None),
    ],
)
def test_a_rule_is_offered_only_where_it_means_what_it_says(command: str, rules: list[str] | None) -> None:
    offered = suggested_rules(verdict(command))
    assert (None if offered is None else list(offered)) == rules


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'a b'",
        "rm *.o",
        "cd src && make all",
        "make 'all tests'",
        "timeout 5 make all",
        "kill 1",
        "npm run a",
    ],
)
def test_an_offered_rule_makes_the_question_needless(command: str) -> None:
    from retinue.tools.shell.analysis.model import Rules

    offered = suggested_rules(verdict(command))
    assert offered
    again = analyse(Request(command, "/home/me/tree", "/home/me", rules=Rules(allow=offered)))
    assert again.outcome == "allow"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("git reset --hard HEAD", "uncommitted"),
        ("git push -f", "remote history"),
        ("git push origin +main", "remote history"),
        ("git push --force-with-lease", "remote history"),
        ("git commit --no-verify", "hooks"),
        ("git commit --amend", "last commit"),
        ("rm -rf x", "force-remove"),
        ("rm -r -f x", "force-remove"),
        ("rm -fr x", "force-remove"),
        ("psql -c 'DROP TABLE a'", "database"),
        ("psql -c 'truncate table a'", "database"),
        ("psql -c 'DELETE FROM a;'", "all rows"),
        ("kubectl delete pod x", "Kubernetes"),
        ("terraform destroy", "Terraform"),
        ("terraform apply -destroy", "Terraform"),
        ("git clean -fd", "does not know"),
        ("dd if=a of=/dev/sda", "disk"),
    ],
)
def test_what_may_be_lost_is_said(command: str, part: str) -> None:
    assert any(part in text for text in warnings_of(verdict(command)))


@pytest.mark.parametrize(
    "command",
    ["git push", "git reset x", "rm x", "psql -c 'DELETE FROM a WHERE b'", "kubectl get pods", "rg 'rm -rf'", "make"],
)
def test_no_warning_without_a_cause(command: str) -> None:
    assert warnings_of(verdict(command)) == ()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("rg x", "search"),
        ("find . | head", "search"),
        ("cat a | sort | uniq", "read"),
        ("ls && echo --- && ls b", "list"),
        ("timeout 5 ls", "list"),
        ("echo a", None),
        ("ls; make", None),
        ("ls > x", None),
        ("for i in a; do ls; done", None),
    ],
)
def test_a_command_is_folded_by_what_all_its_parts_do(command: str, expected: str | None) -> None:
    assert display_class(verdict(command)) == expected


@pytest.mark.parametrize(
    ("command", "code", "failed"),
    [
        ("rg x", 1, False),
        ("rg x", 2, True),
        ("grep x a", 1, False),
        ("diff a b", 1, False),
        ("diff a b", 2, True),
        ("test -f x", 1, False),
        ("[ -f x ]", 1, False),
        ("[[ -f x ]]", 1, False),
        ("find .", 1, False),
        ("git diff --quiet", 1, False),
        ("git grep x", 1, False),
        ("git push", 1, True),
        ("make", 1, True),
        ("make", 0, False),
        ("false", 1, True),
        ("ls | grep x", 1, False),
        ("grep x a | wc", 1, True),
        ("make && grep x a", 1, True),
        ("make; grep x a", 1, False),
        ("make || grep x a", 1, False),
        ("timeout 5 grep x a", 1, False),
        ("timeout 5 grep x a", 124, True),
        ("sudo grep x a", 1, False),
        ("grep x a", 127, True),
        ("grep 'x", 1, True),
        ("", 1, True),
    ],
)
def test_an_exit_code_is_judged_by_what_the_command_means(command: str, code: int, failed: bool) -> None:
    parts = read(command).parts
    assert is_error(parts, code) is failed
    assert (meaning(parts, code) is not None) is (code != 0 and not failed)
