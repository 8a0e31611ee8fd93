"""Removals that always need a human: of the root, what lies in it, the home, the working directory or its parents.

They are looked for in every command of a text, behind every wrapper and in strings for other shells. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from retinue.tools.shell.analysis.model import Trait, Word
from retinue.tools.shell.analysis.quoting import resolve

_REMOVERS = frozenset(("rm", "rmdir"))
_HOME = re.compile(r"\$HOME\b|\$\{HOME(?:[:?%#-][^}]*)?\}")
_HERE = re.compile(r"\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`")
_BARE_TILDE = re.compile(r"~(?P<user>[A-Za-z_][\w-]*|\+)?(?=/|\Z)")
_VARIABLE_ROOT = re.compile(r"\"?\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*[^}]*\}|[0-9@*])\"?(?:/\.?)*(?:/?[*?\[].*|/\"?)?\Z")
_BRACES = re.compile(r"([^{}]*)\{([^{}]*)\}(.*)\Z", re.DOTALL)
_MAX_ALTERNATIVES = 64


_NAMES = ("rm", "rmdir", "find")


_QUOTING = str.maketrans("", "", "'\"\\\n")


def may_hold_removal(text: str) -> bool:
    """A first look at a whole text: whether such a name is there, with quotes in it or without."""
    bare = text.translate(_QUOTING)
    return "rm" in bare or "find" in bare or "$'" in text


def may_remove(word: Word) -> bool:
    """Whether the word names a program that removes, or is a text that may hold one."""
    return word.value.endswith(_NAMES) or " " in word.value or "\n" in word.value


def critical(words: Sequence[Word], bases: Sequence[str], cwd: str, home: str) -> str | None:
    """The target that makes this command a critical removal. `words` begin with the program."""
    name = words[0].value.rsplit("/", 1)[-1]
    if name == "find":
        return _found_and_deleted(words, bases, cwd, home)
    if name not in _REMOVERS:
        return None
    dashes = False
    for word in words[1:]:
        if word.value == "--" and not dashes:
            dashes = True
        elif (dashes or not word.value.startswith("-")) and is_critical(word, bases, cwd, home):
            return word.raw
    return None


def _found_and_deleted(words: Sequence[Word], bases: Sequence[str], cwd: str, home: str) -> str | None:
    actions = {word.value for word in words}
    removes = "-delete" in actions or ({"-exec", "-execdir"} & actions and {"rm", "/bin/rm", "shred"} & actions)
    if not removes:
        return None
    for word in words[1:]:
        if word.value.startswith("-"):
            return None
        if word.value != "." and is_critical(word, bases, cwd, home):
            return word.raw
    return None


def is_critical(word: Word, bases: Sequence[str], cwd: str, home: str) -> bool:
    """Whether removing this would take the root, a child of it, a home, the working directory or a parent."""
    return any(_alternative(resolve(raw), bases, cwd, home) for raw in _alternatives(word.raw))


def _alternatives(raw: str) -> Iterator[str]:
    """A brace list, spelled out; the word itself first."""
    waiting, seen = [raw], 0
    while waiting and seen < _MAX_ALTERNATIVES:
        text = waiting.pop()
        seen += 1
        yield text
        found = _BRACES.match(text)
        if found is not None and "," in found[2] and not found[1].endswith("$"):
            waiting.extend(f"{found[1]}{piece}{found[3]}" for piece in found[2].split(","))


def _alternative(word: Word, bases: Sequence[str], cwd: str, home: str) -> bool:
    raw = word.raw
    text = word.value
    if word.traits & Trait.EXPANSION:
        text = _HERE.sub(lambda _: cwd, _HOME.sub(lambda _: home, text))
        if text == word.value:
            return _directly_under_variable(raw)
    elif word.traits & Trait.TILDE:
        user = _BARE_TILDE.match(text)
        if user is None:
            return False
        text = (cwd if user["user"] == "+" else home if user["user"] is None else f"/~{user['user']}") + text[
            user.end() :
        ]
    if not text:
        return False
    return any(
        _takes_too_much(posixpath.normpath(posixpath.join(base, _above_glob(text))), cwd, home) for base in bases
    )


def _directly_under_variable(raw: str) -> bool:
    """`$X/`, `$X/*` and `"$X"/*`: with the variable unset they are the root and all that lies in it."""
    return _VARIABLE_ROOT.match(raw) is not None and ("/" in raw or "*" in raw)


def _above_glob(text: str) -> str:
    """Everything in a directory is as much as the directory."""
    head, _, last = text.rpartition("/")
    if last and not last.strip("*?[].!^") and any(c in last for c in "*?["):
        return head or ("/" if text.startswith("/") else ".")
    return text


def _takes_too_much(path: str, cwd: str, home: str) -> bool:
    path = "/" + path.lstrip("/")
    if path == "/" or path.count("/") == 1:
        return True
    return any(place == path or place.startswith(f"{path}/") for place in (cwd, home))
