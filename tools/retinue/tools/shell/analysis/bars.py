"""What no rule and no mode approves: a critical removal, a change of a protected path, a command of the human.

Pure but for the ports of the request.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from retinue.tools.permissions.commands import UNCOVERED
from retinue.tools.permissions.protected import protected_part
from retinue.tools.shell.analysis.case import Survey
from retinue.tools.shell.analysis.coarse import is_cut
from retinue.tools.shell.analysis.model import Place, Reason, Trait, Word, under
from retinue.tools.shell.analysis.paths import named_paths
from retinue.tools.shell.analysis.reading import may_be_fed
from retinue.tools.shell.analysis.removal import Ground, bindings, critical, may_hold_removal, may_remove
from retinue.tools.shell.analysis.wrappers import SHELLS, inner_starts

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*\Z")
_EXPANSION = re.compile(r"\$(?:\{[^}]*\}|\w+|[@*#?!$-])")
_QUOTING = re.compile(r"[\\'\"]")
_NAMES = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(UNCOVERED))})(?!\w)")


def critical_removal(survey: Survey) -> Reason | None:
    """A removal that needs a human, in any command, wherever a `cd` before it may have led."""
    if not may_hold_removal(survey.request.command) or not _may_remove(survey):
        return None
    cwd = posixpath.normpath(survey.request.cwd)
    text = survey.request.command
    values = bindings(_all_words(survey)) if "$" in text and "=" in text else {}
    for words, where in survey.commands:
        ground = Ground(where.bases, cwd, where.home, where.real, values)
        for tail in inner_starts(words):
            found = critical(tail, ground)
            if found is not None:
                return Reason("removal", 0, f"removal of {found}")
    return None


def _all_words(survey: Survey) -> Iterator[Word]:
    for part in survey.reading.parts:
        yield from (*part.assignments, *part.words)
    for words, _ in survey.commands:
        yield from words


def _may_remove(survey: Survey) -> bool:
    unlike = survey.reading.status == "broken" or may_be_fed(survey.request.command)
    return unlike or any(may_remove(word) for part in survey.reading.parts for word in part.words)


def bar(survey: Survey) -> Reason | None:
    """Why no rule covers the command and no mode lets it through."""
    if survey.reading.status == "broken" and is_cut(survey.request.command):
        return Reason("limit", 0, "it is too long for anyone to tell what it runs")
    if (name := uncovered(survey)) is not None:
        return Reason("uncovered", 0, f"{name} acts with the power of the person who started you: no rule covers it")
    if (path := protected_write(survey)) is not None:
        return Reason("protected", 0, f"{path} is protected: no rule and no mode approves a change")
    return None


def uncovered(survey: Survey) -> str | None:
    """The first command of the text that no rule covers."""
    plain = _QUOTING.sub("", survey.request.command).casefold()
    if not any(name in plain for name in UNCOVERED) and not _may_hide_a_name(survey):
        return None
    for words, _ in survey.commands:
        for tail in _all_tails(words):
            if (name := _uncovered_program(tail)) is not None:
                return name
    named = _NAMES.search(plain)
    if named is not None and any(_runs_text(tail) for words, _ in survey.commands for tail in inner_starts(words)):
        return named[0]
    return None


def _runs_text(words: Sequence[Word]) -> bool:
    """Whether what these words run may stand anywhere in the text: in a variable, an alias, or what a shell is fed."""
    program, rest = words[0], words[1:]
    name = _base(program.value)
    if program.traits & (Trait.EXPANSION | Trait.SUBSTITUTION | Trait.ANSI) or name == "alias":
        return True
    if name == "env":
        return any(word.value.startswith(("-S", "--split-string")) for word in rest)
    return name in SHELLS and all(word.value.startswith("-") for word in rest)


def _may_hide_a_name(survey: Survey) -> bool:
    """Whether a program's name is made of more than letters, so that the plain text need not hold it."""
    return any(words and words[0].traits & ~Trait.QUOTED for words, _ in survey.commands)


def _all_tails(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    for tail in inner_starts(words):
        name = _base(tail[0].value)
        if name == "find":
            yield from _behind(tail, frozenset(("-exec", "-execdir", "-ok", "-okdir")))
            return
        yield tail
        if name in SHELLS:
            yield from (tail[i:] for i in range(1, len(tail)))
        elif name == "env":
            glued = (word for word in tail if word.value.startswith("-S") and len(word.value) > 2)
            yield from ((word._replace(value=word.value[2:].split(" ")[0]),) for word in glued)


def _behind(words: Sequence[Word], marks: frozenset[str]) -> Iterator[Sequence[Word]]:
    """Every tail behind the first of these words."""
    at = next((i for i, word in enumerate(words) if _base(word.value) in marks), len(words))
    yield from (words[i:] for i in range(at + 1, len(words)))


def _uncovered_program(words: Sequence[Word]) -> str | None:
    program = words[0]
    name = _base(program.value)
    if _PYTHON.match(name):
        return _module(words)
    return _in_disguise(program, name) if not program.literal else name if name in UNCOVERED else None


def _in_disguise(program: Word, name: str) -> str | None:
    """A name that something else may become when the command runs: anything that holds it, and what spells it anew."""
    if (found := _NAMES.search(program.raw)) is not None:
        return found[0]
    if program.traits & Trait.ANSI and "\\" in program.raw:
        return program.raw
    bare = _base(_EXPANSION.sub("", program.value))
    return next((each for each in sorted(UNCOVERED) if fnmatchcase(each, bare) or each == name), None)


def _module(words: Sequence[Word]) -> str | None:
    for at, word in enumerate(words[1:], 1):
        if word.value == "-m" and at + 1 < len(words):
            name = words[at + 1].value
        elif word.value.startswith("-m"):
            name = word.value[2:]
        else:
            continue
        top = name.strip().partition(".")[0].casefold()
        return top if top in UNCOVERED else None
    return None


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1].casefold()


def protected_write(survey: Survey) -> str | None:
    """The first protected path that the command names to be written."""
    written = dict.fromkeys((word, where) for files, where in survey.files for word in files.written)
    for word, where in written:  # once, though each end of a command names it again
        for path in named_paths(word, where):
            if path is not None and is_protected(path, where):
                return word.value
    return None


def is_protected(path: str, where: Place) -> bool:
    """Whether a path, as it is named or with its links followed, is one that nobody changes unasked."""
    root, real_root = where.roots[0], where.real_roots[0]
    return _protected(path, root) or _protected(where.real(path), real_root)


def _protected(path: str, root: str) -> bool:
    relative = posixpath.relpath(path, root) if under(path, (root,)) else path
    return protected_part(PurePosixPath(relative)) is not None
