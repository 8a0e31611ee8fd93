"""How rules with a command are compared with the text of a command. Pure, and coarse on purpose.

Nothing here understands a shell. So an allow rule counts only when it is the whole text, and a deny or ask rule counts
as soon as any reading of any part of the text fits it: too often rather than too seldom.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SEPARATORS = re.compile(r"&&|\|\||[;|&\n\r(){}`]|\$\(")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*+\s+")
_LEADERS = frozenset(
    (
        "timeout",
        "time",
        "nice",
        "nohup",
        "stdbuf",
        "command",
        "builtin",
        "noglob",
        "env",
        "exec",
        "xargs",
        "parallel",
        "sudo",
        "doas",
        "su",
        "setsid",
        "ionice",
        "flock",
        "watch",
        "eval",
        "then",
        "do",
        "else",
        "elif",
        "if",
        "while",
        "until",
        "!",
        "find",
        "bash",
        "sh",
        "dash",
        "zsh",
        "ksh",
        "busybox",
    )
)
"""Words that only lead to a command somewhere behind them."""
_AS_MODULE = re.compile(r"-m\s*(retinue|ray)\b")
_QUOTING = re.compile(r"[\\'\"]")
_SPACE = re.compile(r"\s+")
_UNESCAPED_STAR = re.compile(r"(?<!\\)\*")

MAX_CHARS = 10_000
MAX_WORDS = 200

UNCOVERED = frozenset(("retinue", "ray", "tmux"))
"""Commands that no allow rule covers: whoever runs them acts with the power of the human."""


def is_exact(content: str) -> bool:
    """Whether a rule names one text, and neither a prefix (`make:*`) nor a wildcard."""
    return _UNESCAPED_STAR.search(content) is None


def literal(content: str) -> str:
    """The one text that an exact rule names."""
    return content.replace("\\*", "*").strip()


@lru_cache(maxsize=1024)
def pattern_of(content: str) -> re.Pattern[str]:
    """`make:*` and `make *`: `make` alone or with words behind it. `ls*` has no word boundary. `\\*` is a star."""
    text = content.strip()
    bare = ""
    if text.endswith(":*") or (text.endswith(" *") and len(_UNESCAPED_STAR.findall(text)) == 1):
        text, bare = text[:-2], r"(?:\s.*)?"
    pieces = [re.escape(piece.replace("\\*", "*")) for piece in _UNESCAPED_STAR.split(_SPACE.sub(" ", text))]
    return re.compile(".*".join(pieces) + bare, re.DOTALL)


@lru_cache(maxsize=4)  # for the rules of one decision; a reading can be large
def readings(command: str) -> frozenset[str] | None:
    """Every text that a deny or ask rule is compared with: the whole, its parts, and each without what stands before
    the command proper, without quotes, and with the bare name of the program. None for a text too long to take apart.
    """
    if len(command) > MAX_CHARS:
        return None
    texts = {command.strip(), _SPACE.sub(" ", command).strip()}
    for part in _SEPARATORS.split(command):
        for unquoted in (part, _QUOTING.sub("", part)):
            peeled = _peeled(_SPACE.sub(" ", unquoted).strip())
            if peeled is None:
                return None
            texts |= peeled
    texts.discard("")
    return frozenset(texts)


def runs_uncovered(command: str) -> str | None:
    """The first command in the text that no allow rule covers."""
    texts = readings(command)
    if texts is None:
        return "a text too long to take apart"
    modules = {found[1] for found in _AS_MODULE.finditer(command)}
    return min(({text.partition(" ")[0] for text in texts} | modules) & UNCOVERED, default=None)


def allows(content: str, command: str) -> bool:
    """Whether an allow rule covers this command: exactly this text, whitespace at its ends apart."""
    return is_exact(content) and literal(content) == command.strip()


def forbids(content: str, command: str) -> bool:
    """Whether a deny or ask rule fits any reading of this command."""
    texts = readings(command)
    if texts is None:
        return True
    pattern = pattern_of(content)
    return any(pattern.fullmatch(text) for text in texts)


def _peeled(part: str) -> set[str] | None:
    """The part, what follows the assignments before it, and what may be a command behind a word that leads to one."""
    texts = {part}
    while front := _ASSIGNMENT.match(part):
        part = part[front.end() :]
        texts.add(part)
    words = part.split(" ")
    behind = len(words) if _base(words[0]) in _LEADERS else 1
    if behind > MAX_WORDS:
        return None
    for i in range(behind):
        texts.add(" ".join(words[i:]))
        texts.add(" ".join((_base(words[i]), *words[i + 1 :])))
    return texts


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]
