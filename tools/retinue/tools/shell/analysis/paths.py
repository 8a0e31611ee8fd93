"""Where a word of a command lies on the disk. Pure but for the port that follows links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from retinue.tools.shell.analysis.model import Place, Request, Trait, Word

FREE_TO_READ = frozenset(("/dev/null", "-"))
_GLOB_CHARACTERS = "*?["
_HIDES_BRACKETS = Trait.QUOTED | Trait.ESCAPED
_GLOBS = re.compile(r"[*?\[(]")
_CLASS = re.compile(r"\[[:.=]")
"""What a bracket holds is then known to the shell alone."""
_MAY_LEAD_UP = re.compile(r"\.\.?[*?\[]")
_UNPLACEABLE = Trait.EXPANSION | Trait.SUBSTITUTION | Trait.BRACE | Trait.ANSI | Trait.EQUALS


def place(request: Request) -> Place:
    """Where a command begins."""
    cwd, roots, home = _normal(request.cwd, request.root or request.cwd, request.allowed, request.home)
    real = request.real
    real_roots = tuple(map(real, roots))
    return Place((cwd,), roots, real_roots, home, real, request.expand, request.below, request.ours)


@lru_cache(maxsize=64)
def _normal(cwd: str, root: str, allowed: tuple[str, ...], home: str) -> tuple[str, tuple[str, ...], str]:
    return (
        posixpath.normpath(cwd),
        tuple(dict.fromkeys(map(posixpath.normpath, (root, *allowed)))),
        posixpath.normpath(home),
    )


def outside(word: Word, where: Place) -> str | None:
    """Why this path may not be read unasked; None when it lies inside, wherever the command runs."""
    if word.value in FREE_TO_READ:
        return None
    for path in candidates(word, where):
        if path is None:
            return f"where {word.raw} leads is not known"
        if not where.inside(path):
            return f"{word.raw} lies outside the working directory"
    return None


def candidates(word: Word, where: Place) -> list[str | None]:
    """Each absolute path that a word may name: one for each directory in which the command may run.

    A glob is placed by what stands before it, and by what it finds; None where that says nothing.
    """
    if word.traits & _UNPLACEABLE:
        return [None]
    text = word.value
    if word.traits & Trait.TILDE:
        expanded = _home(text, where.home)
        if expanded is None:
            return [None]
        text = expanded
    if word.traits & Trait.GLOB:
        before = _before_glob(text)
        if before is None or ("[" in text and (word.traits & _HIDES_BRACKETS or _CLASS.search(text))):
            return [None]
        found = [path for base in where.bases for path in _through_glob(text, base, where)]
        return [*_named(before, where), *found]
    return _named(text, where)


def _named(text: str, where: Place) -> list[str | None]:
    """As a shell reads it, which takes the component before a `..` away; and as the system does, which follows it."""
    paths = [posixpath.normpath(posixpath.join(base, text)) for base in where.bases]
    if ".." not in text:
        return [*paths]
    followed = (_follow(posixpath.join(base, text), where.real) for base in where.bases)
    real = {where.real(path) for path in paths}
    return [*paths, *(path for path in followed if where.real(path) not in real)]


def _follow(path: str, real: Callable[[str], str]) -> str:
    at = "/"
    for component in path.split("/"):
        if component == "..":
            at = posixpath.dirname(real(at))
        elif component not in ("", "."):
            at = posixpath.join(at, component)
    return at


def named_paths(word: Word, where: Place) -> list[str | None]:
    """As `candidates`: to look for what is forbidden."""
    return candidates(word, where)


def looks_outside(word: Word, where: Place) -> str | None:
    """Why the shell may not look for what a glob finds, whatever the command does with the names."""
    if "/" not in word.value or not word.traits & Trait.GLOB:
        return None
    parts = word.value.split("/")
    for at in range(1, len(parts)):
        if at == len(parts) - 1 or _GLOBS.search(parts[at]):
            why = outside(word._replace(value="/".join(parts[:at]) or "/"), where)
            if why is not None:
                return why
    return None


def _home(text: str, home: str) -> str | None:
    if text == "~" or text.startswith("~/"):
        return home + text[1:]
    return None


def _before_glob(text: str) -> str | None:
    """The directory in which everything lies that this glob may find."""
    parts = text.split("/")
    first = next((i for i, part in enumerate(parts) if any(c in part for c in _GLOB_CHARACTERS)), len(parts))
    for part in parts[first:]:
        if part == ".." or _MAY_LEAD_UP.match(part) or "(" in part:
            return None
    return "/".join(parts[:first]) or ("/" if text.startswith("/") else ".")


def _through_glob(text: str, base: str, where: Place) -> Iterable[str | None]:
    """What a glob finds: each of them, and what stands before it, may be a link that leads out."""
    return where.expand(posixpath.join(base, text.replace("[^", "[!")))
