"""Commands inside of what a command says: in its arguments, its variables, and in what it is fed. Pure.

Used only to look for what is forbidden or critical. What runs text that nobody here can read is told as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from retinue.tools.shell.analysis.coarse import coarse_commands
from retinue.tools.shell.analysis.environment import is_assignment, loads
from retinue.tools.shell.analysis.model import Part, Word, names
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.wrappers import SHELLS, inner_starts, unwrap

_ALL_TEXT = SHELLS | names(
    "eval trap watch su script env sg parallel xargs exec alias ssh hyperfine concurrently socat"
)
"""Any of their arguments may be a command, or a text of several."""

_TEXT_FLAGS: Mapping[str, frozenset[str]] = {
    "tar": names("--to-command --checkpoint-action --use-compress-program -I --info-script -F --rsh-command"),
    "git": names(
        """
        -c -x --exec --extcmd --upload-pack --receive-pack -u --open-files-in-pager -O foreach run --tree-filter
        --index-filter --msg-filter --env-filter --commit-filter --parent-filter --tag-name-filter
        """
    ),
    "rsync": names("-e --rsh --rsync-path"),
    "scp": names("-S -o"),
    "sftp": names("-S -o"),
    "rg": names("--pre"),
    "sort": names("--compress-program"),
    "split": names("--filter"),
    "man": names("-P --pager -H"),
    "mapfile": names("-C"),
    "readarray": names("-C"),
    "complete": names("-C"),
    "compgen": names("-C"),
    "bind": names("-x"),
    "vim": names("-c --cmd"),
    "vi": names("-c --cmd"),
    "nvim": names("-c --cmd"),
    "make": names("--eval"),
    "npm": names("-c --call"),
    "npx": names("-c --call"),
    "nodemon": names("-x --exec"),
    "cargo": names("-x -s"),
    "nc": names("-e -c"),
    "ncat": names("-e -c --exec --sh-exec"),
    "zip": names("-TT --unzip-command"),
    "flock": names("-c --command"),
    "nix": names("-c --command"),
    "nix-shell": names("--run --command"),
}
"""Flags, and sub-commands, whose value a program runs as a command."""

_TAKES_COMMAND = re.compile(r"-[A-Za-z]*c\Z|--command\Z")
_MORE_THAN_A_NAME = re.compile(r"[\s;|&<>(){}`$]")
_GLUED = re.compile(r"-[A-Za-z0-9]*?[SceCxI](?P<short>.+)|--?[A-Za-z-]+=(?P<long>.+)", re.DOTALL)
_SETTING = re.compile(r"[\w.*/-]*=!?|exec=")
_STDIN = names("- /dev/stdin /dev/fd/0 /proc/self/fd/0")
_SHELL_CODE = re.compile(r"[-+][A-Za-z]*c")
_INTERPRETER = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|expect|Rscript|julia|osascript|guile|irb|ghci"
    r"|elixir|groovy|jshell|emacs|ed|ex)[0-9.]*\Z"
)
_CODE = re.compile(r"-[A-Za-z]*[ceErp](?!\w*=)|--(?:eval|exec|print|run|command)\b|(?:eval|repl)\Z")
_AWKS = names("awk gawk mawk nawk")
_AWK_RUNS = re.compile(r"system|\||getline|@")
_SED_RUNS = re.compile(r"(?:^|[;{}\n0-9$/,|#!\s])e(?:\s|;|\}|\Z)|[/,|#:@][gpiImM0-9w]*e[gpiImM0-9]*(?:[\s;}]|\Z)")
_PRINTERS = names("echo printf find ls fd yes")
_RUN_NO_ARGUMENT = names("find fd fdfind source . trap alias ssh")
_SOURCES = frozenset((".", "source"))


def commands_in(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Commands in the arguments of this one, as far as they are written there."""
    for tail in inner_starts(words):
        name = _base(tail[0])
        if name in _ALL_TEXT:
            yield from _in_any(tail)
            return  # the tails behind are part of it
        if name in _TEXT_FLAGS:
            yield from _behind_flags(tail, _TEXT_FLAGS[name])


def commands_of_variables(part: Part) -> Iterator[Sequence[Word]]:
    """Commands in variables that name what runs later, as in `PROMPT_COMMAND='…'`."""
    for word in (*part.assignments, *part.words):
        if is_assignment(word.raw) and loads(word):
            yield from coarse_commands(word.value.partition("=")[2])


def commands_fed(parts: Sequence[Part]) -> Iterator[Sequence[Word]]:
    """Commands in what the text prints or writes down for a shell, and what `xargs` runs with what is printed."""
    tails = [tail for part in parts if part.words for tail in inner_starts(part.words)]
    runs_text = any(_base(tail[0]) in SHELLS and _reads_input(tail) for tail in tails)
    fed = [tail for tail in tails if _base(tail[0]) == "xargs"]
    if not runs_text and not fed:
        return
    printed = list(_printed(parts))
    if runs_text:
        yield from (printed[at:] for at in range(len(printed)))
        for word in printed:
            yield from coarse_commands(word.value)
    names_alone = [word for word in printed if word.value != "." and not word.value.startswith("-")]
    for tail in fed if names_alone else ():
        yield from ((*inner, *names_alone) for inner in inner_starts(tail)[1:])


def _printed(parts: Sequence[Part]) -> Iterator[Word]:
    for part in parts:
        if part.words and _base(part.inner[0]) in _PRINTERS:
            yield from part.inner[1:]
        for redirect in part.raw.redirects:
            if redirect.operator == "<<<":
                yield resolve(redirect.target)


def feeds_a_shell(parts: Iterable[Part]) -> bool:
    """Whether some shell of the text runs what it is fed: then a here-document may hold commands."""
    tails = (tail for part in parts if part.words for tail in inner_starts(part.words))
    return any(_base(tail[0]) in SHELLS | {"xargs", "parallel", "at", "batch", *_SOURCES, "ssh"} for tail in tails)


def is_unread(words: Sequence[Word]) -> bool:
    """Whether the command runs text that cannot be read here: code for an interpreter, or what a shell is fed."""
    return any(_runs_unread(tail) for tail in inner_starts(words))


def is_unnamed(words: Sequence[Word]) -> bool:
    """Whether the program, or one behind it, is only known when it runs."""
    tails = inner_starts(words)
    if not tails:
        return False
    if _is_open(tails[0][0]) or _is_open(unwrap(tails[0])[0]):
        return True
    begun = tails[1:2] if _base(tails[0][0]) not in _RUN_NO_ARGUMENT else []
    return any(_is_open(tail[0]) for tail in begun) or any(tail[0].value == "{}" for tail in _behind_launch(tails[0]))


def _behind_launch(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The command that xargs or an action of find begins."""
    marks = ("-exec", "-execdir", "-ok", "-okdir")
    for at, word in enumerate(words[:-1]):
        if word.value in marks:
            yield words[at + 1 :]
    if words and _base(words[0]) == "xargs":
        behind = (at for at in range(1, len(words)) if not words[at].value.startswith("-"))
        yield from (words[at:] for at in behind if words[at - 1].value not in ("-I", "--replace"))


def _is_open(word: Word) -> bool:
    return not word.literal and not is_assignment(word.raw)


def _runs_unread(words: Sequence[Word]) -> bool:
    name, rest = _base(words[0]), words[1:]
    if name in SHELLS:
        return _reads_input(words)
    if name in _SOURCES:
        return any(not word.literal or word.value in _STDIN for word in rest[:1])
    if _INTERPRETER.match(name):
        script = next((word for word in rest if not word.value.startswith("-")), None)
        return (script is None and not _only_tells(rest)) or any(_CODE.match(word.value) for word in rest)
    if name in _AWKS:
        return any(_AWK_RUNS.search(word.value) for word in rest)
    if name == "sed":
        return any(_SED_RUNS.search(word.value) for word in rest)
    return False


def _only_tells(rest: Sequence[Word]) -> bool:
    return bool(rest) and all(word.value in ("-V", "-v", "--version", "--help", "-h") for word in rest)


def _reads_input(words: Sequence[Word]) -> bool:
    """Whether a shell takes its commands from what it is fed."""
    rest = words[1:]
    if _only_tells(rest) or any(_SHELL_CODE.match(word.value) for word in rest):
        return False
    said = [word for word in rest if not word.value.startswith(("-", "+"))]
    return not said or any(word.value in _STDIN or word.value == "-s" or not word.literal for word in rest)


def _in_any(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    before = ""
    for word in words[1:]:
        value = word.value
        if value.startswith("-"):
            glued = _GLUED.match(value)
            if glued is not None:
                yield from coarse_commands(glued["short"] or glued["long"])
        elif _TAKES_COMMAND.match(before) or _MORE_THAN_A_NAME.search(value):
            yield from coarse_commands(value)
        if is_assignment(value):
            yield from coarse_commands(value.partition("=")[2])
        before = value


def _behind_flags(words: Sequence[Word], flags: frozenset[str]) -> Iterator[Sequence[Word]]:
    for at, word in enumerate(words[1:], 1):
        flag, mark, glued = word.value.partition("=")
        if word.value in flags and at + 1 < len(words):
            yield from coarse_commands(_command_of(words[at + 1].value))
            if not word.value.startswith("-"):
                yield words[at + 1 :]
        elif mark and flag in flags:
            yield from coarse_commands(_command_of(glued))


def _command_of(text: str) -> str:
    """What a setting such as `alias.x=!…` runs."""
    return _SETTING.sub("", text, count=1) if _SETTING.match(text) else text.removeprefix("!")


def _base(word: Word) -> str:
    return word.value.rsplit("/", 1)[-1]
