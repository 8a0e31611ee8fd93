"""Removals that always need a human: of the root, what lies in it, the home, the working directory or its parents.

They are looked for in every command of a text, behind every wrapper and in strings for other shells. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from retinue.tools.shell.analysis.environment import is_assignment
from retinue.tools.shell.analysis.model import Trait, Word, as_written, names
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.wrappers import RUNNERS, SHELLS

_REMOVERS = names("rm rmdir unlink shred truncate srm wipe trash trash-put gio-trash")
_FINDERS = names("find fd fdfind")
_EXECUTES = names("-exec -execdir -ok -okdir -x -X --exec --exec-batch")
_HOME = re.compile(r"\$HOME\b|\$\{HOME(?:[:?%#-][^}]*)?\}")
_HERE = re.compile(r"\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`")
_BARE_TILDE = re.compile(r"~(?P<user>[A-Za-z_][\w-]*|[+-])?(?=/|\Z)")
_VARIABLE = re.compile(r"\$(?:(?P<plain>[A-Za-z_]\w*|[0-9@*])|\{(?P<braced>[A-Za-z_]\w*)[^}]*\})")
_ROOT_REST = re.compile(r"/*(?:/\.?)*(?:/?[*?\[].*|/)?\Z")
_BRACES = re.compile(r"([^{}]*)\{([^{}]*)\}(.*)\Z", re.DOTALL)
_BETWEEN = re.compile(r"[\s;|&(){}'\"`/]+")
_FIND_OPTION = re.compile(r"-(?:[HLP]|O\d*)\Z")
_MAX_ALTERNATIVES = 64
_NAMES = (*_REMOVERS, *_FINDERS)
_QUOTING = str.maketrans("", "", "'\"\\\n")
_MAY_REMOVE = re.compile(r"rm|find|fd|unlink|shred|truncate|wipe|trash")


def may_hold_removal(text: str) -> bool:
    """A first look at a whole text: whether such a name is there, with quotes in it or without."""
    bare = text.translate(_QUOTING)
    return "$'" in text or _MAY_REMOVE.search(bare) is not None


def may_remove(word: Word) -> bool:
    """Whether the word names a program that removes, or is a text that may hold one."""
    return word.value.endswith(_NAMES) or " " in word.value or "\n" in word.value or "=" in word.value


class Ground(NamedTuple):
    """Where a command removes: the folders it may run in, those that must stay, and what variables may hold."""

    bases: Sequence[str]
    cwd: str
    home: str
    real: Callable[[str], str] = as_written
    values: Mapping[str, Sequence[str]] = {}


def critical(words: Sequence[Word], ground: Ground) -> str | None:
    """The target that makes this command a critical removal. `words` begin with the program."""
    name = _base(words[0])
    if name in _FINDERS:
        return _found_and_removed(name, words, ground)
    if name not in _REMOVERS:
        return None
    dashes = False
    for word in words[1:]:
        if word.value == "--" and not dashes:
            dashes = True
        elif (dashes or not word.value.startswith("-")) and is_critical(word, ground):
            return word.raw
    return None


def _found_and_removed(name: str, words: Sequence[Word], ground: Ground) -> str | None:
    if not _removes(words):
        return None
    for word in _starts(name, words):
        if word.value == ".":
            elsewhere = [base for base in ground.bases if base != ground.cwd]
            if elsewhere and is_critical(word, ground._replace(bases=elsewhere)):
                return word.raw
        elif is_critical(word, ground):
            return word.raw
    return None


def _removes(words: Sequence[Word]) -> bool:
    """Whether what is found is deleted, or given to a program that removes, whatever stands before that."""
    for at, word in enumerate(words):
        if word.value == "-delete":
            return True
        if word.value in _EXECUTES and _runs_remover(words[at + 1 :]):
            return True
    return False


def _runs_remover(words: Sequence[Word]) -> bool:
    if not words:
        return False
    if _base(words[0]) in _REMOVERS:
        return True
    if _base(words[0]) not in RUNNERS | SHELLS:
        return False
    return any(not _REMOVERS.isdisjoint(_BETWEEN.split(word.value)) for word in words[1:])


def _starts(name: str, words: Sequence[Word]) -> Iterator[Word]:
    """Where a search begins; the working directory when nothing is said."""
    said = 0
    rest = iter(words[1:])
    for word in rest:
        value = word.value
        if name != "find" and value in _EXECUTES:
            break
        if value == "-D" and name == "find":
            next(rest, None)
        elif value.startswith("-") and (name != "find" or _FIND_OPTION.match(value)):
            continue
        elif value.startswith("-") or value in ("(", "!"):
            break
        else:
            said += 1
            yield word
    if not said:
        yield Word(".", ".", 0)


def bindings(words: Iterable[Word]) -> dict[str, list[str]]:
    """What each variable may hold: every text, as written, that some word of the command gives it."""
    found: dict[str, list[str]] = {}
    for word in words:
        if is_assignment(word.raw):
            name, _, value = word.raw.partition("=")
            found.setdefault(name, []).append(value)
    return found


def is_critical(word: Word, ground: Ground) -> bool:
    """Whether removing this would take the root, a child of it, a home, the working directory or a parent."""
    return any(
        _alternative(resolve(raw), ground) for known in _filled(word.raw, ground.values) for raw in _alternatives(known)
    )


def _filled(raw: str, values: Mapping[str, Sequence[str]]) -> list[str]:
    """The word, and what it is with each value of each variable in it."""
    found = [raw]
    for name, texts in (*values.items(), *values.items()) if "$" in raw else ():  # one may hold another
        variable = re.compile(rf"\$(?:{re.escape(name)}\b|\{{{re.escape(name)}[^}}]*\}})")
        for known in found[:_MAX_ALTERNATIVES]:
            if variable.search(known):
                found += [variable.sub(lambda _, text=text: text, known) for text in texts[:_MAX_ALTERNATIVES]]
    return found[:_MAX_ALTERNATIVES]


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


def _alternative(word: Word, ground: Ground) -> bool:
    text = word.value
    if word.traits & Trait.EXPANSION:
        text = _HERE.sub(lambda _: ground.cwd, _HOME.sub(lambda _: ground.home, text))
        if text == word.value:
            return _directly_under_variable(word.raw)
    elif word.traits & Trait.TILDE:
        user = _BARE_TILDE.match(text)
        if user is None:
            return False
        text = _home_of(user["user"], ground) + text[user.end() :]
    return bool(text) and any(_takes_too_much(path, ground) for path in _removed(text, ground))


def _home_of(user: str | None, ground: Ground) -> str:
    """Where the shell was before is as unknown as a variable: it may have been anywhere."""
    if user is None:
        return ground.home
    return {"+": ground.cwd, "-": "/"}.get(user, f"/~{user}")


def _removed(text: str, ground: Ground) -> Iterator[str]:
    """What goes, in each folder in which the command may run: by its name, and behind the links that it goes through.

    A link itself is removed; what it leads to goes when a slash, a dot or a glob stands behind it.
    """
    above = _above_glob(text)
    for base in ground.bases:
        named = posixpath.join(base, above)
        yield posixpath.normpath(named)
        if above != text or text.endswith(("/", "/.", "/..")):
            yield posixpath.normpath(ground.real(named))
        else:
            folder, last = posixpath.split(named)
            yield posixpath.normpath(posixpath.join(ground.real(folder), last))


def _directly_under_variable(raw: str) -> bool:
    """`$X/`, `$X/*`, `"$X/"*`, `$X/$Y` and `${X:-/}`: unset, they are the root or all that lies in it."""
    bare = raw.replace('"', "")
    first = _VARIABLE.match(bare)
    if first is None:
        return False
    rest = _VARIABLE.sub("", bare)
    if "OLDPWD" in (first["plain"], first["braced"]):
        return not rest or _ROOT_REST.match(rest) is not None
    return bool(rest or "/" in bare) and _ROOT_REST.match(rest) is not None


def _above_glob(text: str) -> str:
    """Everything in a directory is as much as the directory."""
    head, _, last = text.rpartition("/")
    if last and not last.strip("*?[].!^") and any(c in last for c in "*?["):
        return head or ("/" if text.startswith("/") else ".")
    return text


def _takes_too_much(path: str, ground: Ground) -> bool:
    path = "/" + path.lstrip("/")
    if path == "/" or path.count("/") == 1:
        return True
    stays = (ground.cwd, ground.home, ground.real(ground.cwd), ground.real(ground.home))
    return any(place == path or place.startswith(f"{path}/") for place in stays)


def _base(word: Word) -> str:
    return word.value.rsplit("/", 1)[-1]
