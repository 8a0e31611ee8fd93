"""Permission rules against commands: what denies, asks and allows, part by part."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import MAX_PARTS, Request, Rules


def a(*allow: str, deny: tuple[str, ...] = (), ask: tuple[str, ...] = ()) -> Rules:
    return Rules(allow, ask, deny)


def outcome(command: str, rules: Rules) -> str:
    return analyse(Request(command, "/home/me/tree", "/home/me", "bash", (), rules)).outcome


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        ("npm test", a("Bash(npm test:*)"), "allow"),
        ("npm test; ls", a("Bash(npm test:*)"), "allow"),
        ("npm test && npm run x", a("Bash(npm test:*)"), "ask"),
        ("(npm test)", a("Bash(npm test:*)"), "ask"),
        ('npm test "a\nb"', a("Bash(npm test:*)"), "allow"),
        ("npm test\nnpm test", a("Bash(npm test:*)"), "allow"),
        ("npm test <<E\nx\nE", a("Bash(npm test:*)"), "allow"),
        ("npm test <<E\n$(x)\nE", a("Bash(npm test:*)"), "ask"),
        ("npm test < a", a("Bash(npm test:*)"), "allow"),
        ("npm test < /etc/passwd", a("Bash(npm test:*)"), "ask"),
        ("npm test > /etc/x", a("Bash(*)"), "ask"),
        ("npm test > out", a("Bash(*)"), "allow"),
        ("for i in 1 2; do npm test; done", a("Bash(*)"), "allow"),
        ("for i in 1 2; do curl x; done", a("Bash(*)", deny=("Bash(curl:*)",)), "deny"),
        ("$x y", a("Bash(*)", deny=("Bash(curl:*)",)), "ask"),
        ("$x y", a("Bash(*)"), "allow"),
        ("cat secret/a", a(deny=("Read(secret/**)",)), "deny"),
        ("cat src/../secret/a", a(deny=("Read(secret/**)",)), "deny"),
        ("sed -i s/a/b/ gen/x", a("Bash(sed:*)", deny=("Edit(gen/**)",)), "deny"),
        ("tee gen/x", a("Bash(tee:*)", deny=("Edit(gen/**)",)), "deny"),
        ("echo x > gen/x", a("Bash(*)", deny=("Edit(gen/**)",)), "deny"),
        ("cat gen/x", a(deny=("Edit(gen/**)",)), "read-only"),
        ("cat < secret/a", a("Bash(*)", deny=("Read(secret/**)",)), "deny"),
        ("cd secret && cat a", a("Bash(*)", deny=("Read(secret/**)",)), "deny"),
        ("rg x secret", a(deny=("Read(secret/**)",)), "deny"),
        ("ls", a(ask=("Bash(ls:*)",)), "ask"),
        ("ls src", a(deny=("Bash(ls src)",)), "deny"),
        ("retinue land x", a("Bash(*)"), "ask"),
        ("tmux kill-server", a("Bash(tmux:*)"), "ask"),
        ("cp a b", a("Bash(cp:*)"), "allow"),
        ("cp a ../b", a("Bash(cp:*)"), "ask"),
        ("cp /etc/passwd b", a("Bash(cp:*)"), "ask"),
        ("cp -t .git a", a("Bash(cp:*)"), "ask"),
        ("cp {a,b} c", a("Bash(cp:*)"), "ask"),
        ("git push", a("Bash(git *)"), "allow"),
        ("git -c a=b push", a("Bash(git *)"), "ask"),
        ("git -c a=b push", a("Bash(git -c a=b push)"), "allow"),
        ("xargs rm", a("Bash(rm:*)"), "allow"),
        ("ls | xargs rm -f", a("Bash(rm:*)"), "allow"),
        ("ls | xargs -n1 rm", a("Bash(rm:*)"), "ask"),
        ("env npm test", a("Bash(npm test:*)"), "ask"),
        ("npm test &", a("Bash(npm test:*)"), "allow"),
        ("cd /tmp && npm test", a("Bash(npm test:*)"), "ask"),
        ("cd /tmp && npm test", a("Bash(npm test:*)", "Bash(cd:*)"), "ask"),
        ("cd sub && git commit -m x", a("Bash(git commit:*)"), "ask"),
        ('make "$(x)"', a("Bash(make:*)"), "ask"),
        ("a" * 11000, a("Bash(*)"), "ask"),
        ("curl " + "a" * 11000, a("Bash(*)", deny=("Bash(curl:*)",)), "deny"),
        ('ls "\x00"', a("Bash(*)"), "ask"),
        ("echo 'curl x'", a(deny=("Bash(curl:*)",)), "read-only"),
        ('git commit -m "; curl x"', a("Bash(git commit:*)", deny=("Bash(curl:*)",)), "allow"),
        ("mv a .vscode/x", a("Bash(*)"), "ask"),
        ("ls", a("Bash(", deny=("Bash(",)), "deny"),
        ("pytest -q", a("Bash(pytest:*)"), "allow"),
        ('bash -c "pytest -q"', a("Bash(pytest:*)"), "ask"),
        ("timeout 5 curl x", a(deny=("Bash(curl:*)",)), "deny"),
        ('npm run "a" b', a("Bash(npm run:*)"), "allow"),
        ('"npm" run a', a("Bash(npm run:*)"), "ask"),
        ("export X=1", a("Bash(export:*)"), "allow"),
        ("npm test 2>&1 | tee log", a("Bash(npm test:*)", "Bash(tee:*)"), "allow"),
        ('npm test --cache "$HOME/.cache"', a("Bash(npm test:*)"), "allow"),
        ("npm test $ARGS", a("Bash(npm test:*)"), "ask"),
        ("docker exec web pytest -q", a("Bash(docker exec * pytest *)"), "allow"),
        ("pushd .. && rm x", a("Bash(pushd:*)", "Bash(rm:*)"), "ask"),
        ("watch make", a("Bash(watch:*)"), "ask"),
        ("find . -delete", a("Bash(find:*)"), "ask"),
        ("find . -delete", a("Bash(find . -delete)"), "allow"),
        ("NODE_ENV=test make", a("Bash(make:*)"), "allow"),
        ("MAKEFLAGS=-n make", a("Bash(make:*)"), "ask"),
        ("git 'pu'sh", a("Bash(*)", deny=("Bash(git push:*)",)), "deny"),
        ("/usr/bin/git push", a("Bash(*)", deny=("Bash(git push:*)",)), "deny"),
        ("echo $(git push)", a("Bash(*)", deny=("Bash(git push:*)",)), "deny"),
        ("bash -c 'git push'", a("Bash(*)", deny=("Bash(git push:*)",)), "deny"),
        ("ls 'git push'", a("Bash(*)", deny=("Bash(git push:*)",)), "read-only"),
    ],
)
def test_rules_decide_part_by_part(command: str, rules: Rules, expected: str) -> None:
    assert outcome(command, rules) == expected


def test_a_rule_that_names_no_program_does_not_mean_one_that_removes() -> None:
    """A strict reading would allow it: the last words fit. Whoever wrote `* install` did not mean `rm -r … install`."""
    rules = a("Bash(* install)")
    assert outcome("npm install", rules) == "allow"
    assert outcome("npm install && rm -r src install", rules) == "ask"


def test_beyond_the_limit_of_parts_a_deny_rule_still_wins() -> None:
    many = "; ".join(["true"] * (MAX_PARTS + 1))
    assert outcome(many, Rules()) == "ask"
    assert outcome("; ".join(["true"] * MAX_PARTS), Rules()) == "read-only"
    assert outcome(f"{many}; curl x", a("Bash(*)", deny=("Bash(curl:*)",))) == "deny"


def test_a_deny_rule_is_found_behind_a_syntax_error() -> None:
    rules = a("Bash(*)", deny=("Bash(curl:*)",))
    for command in ("curl 'x", "ls ((; curl x", "if ls; curl x", "cat <<A <<B | curl x\nA\nB"):
        assert outcome(command, rules) == "deny", command


def test_the_winning_rule_is_named() -> None:
    verdict = analyse(Request("make x", "/t", "/h", "bash", (), a("Bash(make:*)")))
    assert (verdict.outcome, verdict.rule) == ("allow", "Bash(make:*)")
