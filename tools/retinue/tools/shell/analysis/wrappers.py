"""Commands that run another command. Some are looked through, with their flags; the others never are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from retinue.tools.shell.analysis.environment import is_assignment
from retinue.tools.shell.analysis.model import Word, names

_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?\Z")
_SIGNAL = re.compile(r"(?:SIG)?[A-Z0-9]+\Z")
_NUMBER = re.compile(r"-?\d+\Z")
_MODE = re.compile(r"(?:L|0|\d+[KMG]?B?)\Z")

NEVER_COVERED = names(
    """
    sudo doas su env exec eval xargs watch setsid ionice flock chrt parallel pkexec run0 unshare nsenter chroot
    source . trap coproc alias script ssh
    """
)
"""A prefix rule for one of these would be a rule for everything, so no prefix rule covers them."""

RUNNERS = NEVER_COVERED | names(
    """
    timeout time nice nohup stdbuf command builtin noglob nocorrect busybox toybox caffeinate proot fakeroot
    systemd-run strace ltrace perf gdb valgrind rlwrap watchexec entr taskset numactl prlimit runuser setpriv sg
    cpulimit chpst - npx pnpx bunx find fd fdfind if elif while until then do else ! { cgexec firejail
    setarch linux64 linux32 i386 x86_64 uname26 choom faketime datefudge dbus-run-session dbus-launch xvfb-run
    proxychains proxychains4 tsocks torsocks torify start-stop-daemon catchsegv unbuffer daemonize daemon uvx
    systemd-inhibit bwrap chronic dotenv aws-vault doppler with-contenv gosu su-exec tini dumb-init hyperfine
    """
)
"""Somewhere behind these words another command begins; used only to look for what is forbidden."""

LAUNCHERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "conda", "micromamba", "pipenv", "pipx"), names("run")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), names("exec x dlx")),
    **dict.fromkeys(("direnv", "mise", "asdf", "rbenv", "pyenv", "nodenv", "bundle", "lxc"), names("exec x")),
    **dict.fromkeys(("docker", "podman", "kubectl", "nerdctl", "flatpak", "snap"), names("exec run")),
}
"""Programs of which one sub-command runs another program."""

SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash"))


def unwrap(words: Sequence[Word]) -> Sequence[Word]:
    """What runs behind wrappers whose flags are understood; the same words when there is none."""
    while words:
        skip = _SKIPS.get(words[0].value)
        if skip is None or not words[0].literal:
            return words
        at = skip(words)
        if at is None or at >= len(words):
            return words
        words = words[at:]
    return words


def _timeout(words: Sequence[Word]) -> int | None:
    at = 1
    while at < len(words) and words[at].value.startswith("-"):
        flag = words[at].value
        if flag in ("--foreground", "--preserve-status", "-v", "--verbose"):
            at += 1
        elif flag in ("-k", "--kill-after", "-s", "--signal"):
            pattern = _DURATION if "k" in flag[:3] else _SIGNAL
            if at + 1 >= len(words) or not pattern.match(words[at + 1].value):
                return None
            at += 2
        elif re.fullmatch(r"--kill-after=[\d.]+[smhd]?|--signal=[A-Z0-9]+|-k[\d.]+[smhd]?|-s[A-Z0-9]+", flag):
            at += 1
        else:
            return None
    if at < len(words) and words[at].literal and _DURATION.match(words[at].value):
        return at + 1
    return None


def _nice(words: Sequence[Word]) -> int | None:
    if len(words) > 1 and words[1].value.startswith("-"):
        flag = words[1].value
        if flag in ("-n", "--adjustment"):
            return 3 if len(words) > 2 and _NUMBER.match(words[2].value) else None
        return 2 if re.fullmatch(r"-n-?\d+|--adjustment=-?\d+|-\d+", flag) else None
    return 1


def _stdbuf(words: Sequence[Word]) -> int | None:
    at = 1
    while at < len(words) and words[at].value.startswith("-"):
        flag = words[at].value
        if re.fullmatch(r"-[ioe](?:L|0|\d+[KMG]?B?)|--(?:input|output|error)=(?:L|0|\d+[KMG]?B?)", flag):
            at += 1
        elif flag in ("-i", "-o", "-e") and at + 1 < len(words) and _MODE.match(words[at + 1].value):
            at += 2
        else:
            return None
    return at


def _time(words: Sequence[Word]) -> int | None:
    return 2 if len(words) > 1 and words[1].value == "-p" else 1


def _nohup(words: Sequence[Word]) -> int | None:
    if len(words) > 1 and words[1].value.startswith("-"):
        return 2 if words[1].value == "--" else None
    return 1


def _bare(words: Sequence[Word]) -> int | None:
    """A wrapper that is looked through only without flags."""
    return None if len(words) > 1 and words[1].value.startswith("-") else 1


_SKIPS: dict[str, Callable[[Sequence[Word]], int | None]] = {
    "timeout": _timeout,
    "time": _time,
    "nice": _nice,
    "nohup": _nohup,
    "stdbuf": _stdbuf,
    "command": _bare,
    "builtin": _bare,
    "noglob": _bare,
}


def inner_starts(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Every tail of the words that may be a command of its own: behind assignments and behind runners."""
    tails: list[Sequence[Word]] = []
    while words and is_assignment(words[0].raw):
        words = words[1:]
    if not words:
        return tails
    tails.append(words)
    name = words[0].value.rsplit("/", 1)[-1]
    start = 1 if name in RUNNERS else _behind_launcher(name, words)
    if start is not None:
        tails.extend(words[i:] for i in range(start, min(len(words), 200)) if not words[i].value.startswith("-"))
    return tails


def _behind_launcher(name: str, words: Sequence[Word]) -> int | None:
    verbs = LAUNCHERS.get(name)
    if verbs is None:
        return None
    return next((at for at, word in enumerate(words[1:], 2) if word.value in verbs), None)


def is_wrapper(words: Sequence[Word]) -> bool:
    """Whether the words begin with a wrapper that has something behind it."""
    return len(words) > 1 and words[0].value in _SKIPS
