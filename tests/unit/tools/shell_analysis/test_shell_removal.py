"""Removals that no rule may cover, however they are written; and those that only look alike."""

from __future__ import annotations

import posixpath

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request, Rules

CRITICAL = (
    "rm -rf //",
    "rm -rf /./",
    "rm -rf ~/.",
    "rm -rf ~/*",
    "rm -rf $HOME/*",
    'rm -rf "${HOME:?}"',
    "rm -rf ${HOME}/..",
    'rm -rf "$HOME"/.',
    'rm -rf "$HOME/"',
    "sudo -u root rm -rf /",
    "bash -c 'rm -rf ~'",
    'sh -c "cd /; rm -rf *"',
    "cd / && rm -rf *",
    "cd /; rm -rf usr",
    "(cd /; rm -rf *)",
    'eval "rm -rf /"',
    "env -i rm -rf /",
    "env A=1 rm -rf /",
    "command -p rm -rf /",
    "exec rm -rf /",
    "rm -rf /etc/../",
    "rm -rf /{usr,etc}",
    "rm -r ../..",
    "rm -rf /home",
    "rm -rf /home/me",
    "rm -rf ../*",
    "rm -rf ${X}/",
    'rm -rf "$X/"',
    'rm -rf "${X}"/*',
    "rm -rf ${X}/*",
    'rm -rf "$X"/',
    "rm -rf $(pwd)",
    'rm -rf "$(pwd)"',
    "rm -rf ${DIR:-/}",
    "rm -rf ${X:-/}*",
    "for i in 1; do rm -rf /; done",
    "ls <(rm -rf /)",
    "echo $((10#$(rm -rf /)))",
    'echo "a `rm -rf /` b"',
    "FOO=1 rm -rf /",
    "rm -rf /usr",
    "rm -fr / --no-preserve-root",
    "rm --no-preserve-root -rf /",
    'rm -rf /"*"',
    'rm -rf "/"*',
    "rm -rf /?*",
    "rm -rf /bin /lib",
    "rm -rf ~me/",
    "rm -rf ~/../me",
    "rm -rf ./../tree",
    "rm -rf $HOME/tree",
    'rm -rf "$HOME"/tree',
    "rm -rf ~/tree/",
    "rm -rf ${PWD}",
    "rm -rf $PWD/..",
    "rm -rf $PWD/../..",
    "rm -r -f --  ~",
    'rm -rf "$PWD"/',
    'rm -rf "${PWD}/"',
    "rmdir ~",
    "rmdir /tmp",
    "rm /etc -r",
    "a=1; rm -rf /",
    "true || rm -rf /",
    "[[ -d x ]] && rm -rf /",
    "{ cd /; rm -rf *; }",
    "xargs rm -rf /",
    "xargs -n1 rm -rf ~",
    "nohup rm -rf / &",
    "stdbuf -oL rm -rf /",
    "doas rm -rf /",
    "setsid -f rm -rf /",
    "time -p nice -n 3 rm -rf ~",
    "/usr/bin/rm -rf /",
    "./rm -rf /",
    "r'm' -rf /",
    '"rm" -rf "/"',
    "$'rm' -rf /",
    "\\r\\m -rf /",
    "if rm -rf /; then ls; fi",
    "ls || { rm -rf ~; }",
    "! rm -rf ~",
    "x=`rm -rf /`",
    "export X=$(rm -rf /)",
    "echo ${x:-$(rm -rf /)}",
    "echo $((`rm -rf /`))",
    "cat <<< $(rm -rf /)",
    "ls > $(rm -rf /)",
    "while rm -rf /; do :; done",
    "until rm -rf ~; do :; done",
    "function f { rm -rf /; }",
    "case $(rm -rf /) in a) ;; esac",
    "cd .. && rm -rf tree",
    "cd src && rm -rf ..",
    "cd src; rm -rf ../",
    "cd ~ && rm -rf tree",
    "cd /home && rm -rf me",
    "select x in a; do rm -rf /; done",
    "coproc rm -rf /",
    "timeout -k 5 5 rm -rf ~",
    "timeout $T rm -rf /",
    "busybox rm -rf /",
    "zsh -c 'rm -rf /'",
    'bash -lc "ls; rm -rf ~"',
    "find -L / -delete",
    "find -H ~ -delete",
    "find -O3 / -delete",
    "find -D exec / -delete",
    "find -L -O2 / -type f -delete",
    "cd / && find . -delete",
    "cd / && find -delete",
    "find / -exec /usr/bin/rm -rf {} +",
    "find / -execdir unlink {} \\;",
    "find / -type f -exec shred -u {} +",
    "find ~ -exec truncate -s 0 {} +",
    "find ~ -ok rmdir {} \\;",
    "find / -exec sudo rm {} +",
    "find ~ -type f -exec sh -c 'rm \"$@\"' _ {} +",
    "find / -name '*' -print0 | xargs -0 rm -rf",
    "fd . / -X rm",
    "fd . ~ --exec rm",
    "echo / | xargs rm -rf",
    "xargs rm -rf <<< /",
    "printf '%s\\n' ~ | xargs -I{} rm -rf {}",
    "ls / | xargs -n1 rm -rf",
    "echo 'rm -rf /' | sh",
    "echo rm -rf / | sudo bash",
    "sh <<EOF\nrm -rf /\nEOF",
    "X=/; rm -rf $X",
    'X=/; rm -rf "$X"',
    "X=/; rm -rf ${X}",
    "X=/ && rm -rf $X",
    "export X=~; rm -rf $X",
    "X=$HOME; rm -rf $X",
    "X=/; Y=$X; rm -rf $Y",
    "X=/; if true; then rm -rf $X/*; fi",
    "bash -c 'X=/; rm -rf $X'",
    "rm -rf $OLDPWD",
    'rm -rf "$OLDPWD"/*',
    "rm -rf ~-",
    "rm -rf $X/$Y",
    'rm -rf "$X/$Y"',
    'rm -rf "$X/"*',
    'rm -rf "$X"/"$Y"/*',
    "ssh host 'rm -rf /'",
    "ssh host rm -rf /",
    "r\\\nm -rf /",
    "rm -rf \\\n/",
    "unlink /etc",
    "shred -u ~",
    "srm -r /",
    "env -S'rm -rf /'",
    "alias r='rm -rf /'; r",
    "git -c alias.x='!rm -rf /' x",
    "uv run rm -rf /",
)

ORDINARY = (
    "cd build && rm -rf *",
    "cd build && rm -rf ./*",
    "rm -rf $BUILD",
    'rm -rf "$BUILD"',
    "rm -rf $BUILD/out",
    'rm -rf "$X/build"/*',
    "rm -rf build/*",
    "rm -rf /var/tmp/x",
    'rm -rf "~"',
    "rm -rf '$HOME'",
    "rm -rf \\$HOME",
    "rm -rf ~/.cache/x",
    "rm -rf ~/foo",
    "rm -rf $HOME/foo",
    "rm -rf ./src/../build",
    "rm -f *.o",
    "rm -rf src/*.o",
    "rm -rf ../other",
    "rm -rf ${X}_build",
    "rm -rf ~root/x",
    "echo rm -rf /",
    "git rm -r src",
    "rm -rf node_modules/ dist/",
    "cd src && rm -rf ../build",
    "rm -rf /tmp/x/*",
    "rm -rf .venv",
    "rm -rf a/..b",
    "docker rm -f x",
    'rm -rf "$TMP"/x',
    "find . -delete",
    "find . -name x -exec rm {} +",
    "find -name x -delete",
    "find src -type f -exec /bin/rm {} +",
    "find / -name x -exec grep rm {} +",
    "find . -name x -print0 | xargs -0 rm -f",
    "fd -e o -X rm",
    "ls | xargs rm -f",
    "echo a b | xargs rm",
    "git ls-files | xargs rm",
    "X=build; rm -rf $X",
    "X=/tmp/x; rm -rf $X/y",
    "X=/; ls $X; rm -rf build",
    'rm -rf "$X/build"',
    "rm -rf $X/a/$Y",
    "rm -rf $X-$Y",
    "truncate -s 0 log",
    "unlink a",
    "shred -u a",
    "echo 'rm -rf /' > a",
    "ssh host 'rm -rf /var/tmp/x'",
)


def request(command: str, *allow: str) -> Request:
    return Request(command, "/home/me/tree", "/home/me", "bash", (), Rules(allow=allow))


@pytest.mark.parametrize("command", CRITICAL)
def test_a_critical_removal_is_stopped_whatever_rules_allow(command: str) -> None:
    assert analyse(request(command)).outcome == "hard-stop"
    assert analyse(request(command, "Bash")).outcome == "hard-stop"
    assert analyse(request(command, f"Bash({command})")).outcome == "hard-stop"


@pytest.mark.parametrize("command", ORDINARY)
def test_an_ordinary_removal_is_an_ordinary_question(command: str) -> None:
    assert analyse(request(command)).outcome in ("ask", "read-only")


def test_a_deny_rule_denies_a_critical_removal() -> None:
    rules = Rules(deny=("Bash(rm:*)",))
    assert analyse(Request("ls && rm -rf ~", "/home/me/tree", "/home/me", "bash", (), rules)).outcome == "deny"


def test_a_removal_is_found_in_a_text_that_nobody_can_read() -> None:
    for command in ("ls \x0b#;rm -rf /", "echo 'open\nrm -rf ~", "rm -rf / &&", "x() { rm -rf /"):
        assert analyse(request(command)).outcome == "hard-stop", command


LINKS = {"/home/me/tree/link": "/home/me", "/home/me/tree/up": "/home", "/home/me/tree/away": "/srv/data/x"}


def through_links(path: str) -> str:
    for link, target in LINKS.items():
        if path == link or path.startswith(f"{link}/"):
            return posixpath.normpath(target + path[len(link) :])
    return posixpath.normpath(path)


def outcome_with_links(command: str) -> str:
    asked = Request(command, "/home/me/tree", "/home/me", "bash", (), Rules(allow=("Bash",)), through_links, finds_none)
    return analyse(asked).outcome


def finds_none(_pattern: str) -> tuple[str, ...]:
    return ()


@pytest.mark.parametrize(
    "command",
    ["rm -rf link/.", "rm -rf link/", "rm -rf link/*", "rm -rf up/me", "rm -rf link/tree", "rm -rf away/../../.."],
)
def test_a_link_takes_a_removal_to_where_it_leads(command: str) -> None:
    assert outcome_with_links(command) == "hard-stop"


@pytest.mark.parametrize("command", ["rm -rf link", "rm -rf away/", "rm -rf away/*", "rm -rf link/tree/build"])
def test_a_link_is_removed_without_what_it_leads_to(command: str) -> None:
    assert outcome_with_links(command) != "hard-stop"
