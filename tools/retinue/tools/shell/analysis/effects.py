"""Which files a command that is not in the read-only table names to read or to write. Pure; data first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from retinue.tools.shell.analysis.model import Part, Word, names
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.readonly import is_free


class Files(NamedTuple):
    """Words that name files, as far as they can be told from other arguments.

    `searched` are those of `read` that are read with all that lies in them; `.` where none is named. `swept` are those
    of `written` that are changed, moved or removed with all that lies in them.
    """

    read: tuple[Word, ...]
    written: tuple[Word, ...]
    searched: tuple[Word, ...] = ()
    swept: tuple[Word, ...] = ()


NO_FILES = Files((), ())

_READS_ALL = names(
    """
    cat tac head tail nl wc ls stat file du tree less more diff cmp comm sort uniq cut paste join fold fmt od xxd
    hexdump strings base64 md5sum sha1sum sha256sum readlink realpath source . find column rev vim vi nano
    """
)
_READS_BEHIND_FIRST = frozenset(("grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "jq"))
_WRITES_ALL = names(
    """
    rm rmdir touch mkdir mkfifo tee truncate shred unlink mv split install patch
    """
)
_WRITES_BEHIND_FIRST = frozenset(("chmod", "chown", "chgrp"))
_COPIES = frozenset(("cp", "ln", "rsync", "scp"))
_MOVES = frozenset(("mv", "install"))
_SEARCHES = frozenset(("rg", "ag", "ack"))
_DEEP = re.compile(r"-[A-Za-z]*[rRa][A-Za-z]*\Z|--(?:recursive|dereference-recursive|archive)\Z")
_INTO = re.compile(r"(?:-[A-Za-z]*t|--t(?:a[a-z-]*)?=)(?P<folder>.+)\Z")
_HERE = Word(".", ".", 0)
EXTRACTED = _READS_ALL | _READS_BEHIND_FIRST | _WRITES_ALL | _WRITES_BEHIND_FIRST | _COPIES | {"sed", "cd", "dd"}


def files_of(part: Part) -> Files:
    """Files of the command and of its redirects."""
    named = files_of_words(part.inner) if part.words else NO_FILES
    if not part.raw.redirects:
        return named
    read, written = list(named.read), list(named.written)
    for redirect in part.raw.redirects:
        if redirect.operator in ("<<", "<<-", "<<<") or is_free(redirect) or redirect.operator == "<&":
            continue
        if redirect.operator == "<":
            read.append(resolve(redirect.target))
        else:
            written.append(resolve(redirect.target))
    return Files(tuple(read), tuple(written), named.searched, named.swept)


def files_of_words(words: Sequence[Word]) -> Files:
    """Files that one command line names; `words` begin with the program."""
    name = words[0].value.rsplit("/", 1)[-1]
    if name not in EXTRACTED and name not in _SEARCHES:
        return NO_FILES
    arguments, flags = _split(words[1:])
    if name in _READS_ALL:
        return Files(arguments, (), arguments if name == "diff" and _is_deep(flags) else ())
    if name in _READS_BEHIND_FIRST or name in _SEARCHES:
        return _searched(name, arguments, flags)
    if name in _MOVES:
        copied = _copied(words, arguments, flags)
        return Files((), (*copied.read, *copied.written), swept=copied.read)
    if name in _WRITES_ALL:
        return Files((), arguments, swept=arguments if name == "rm" and _is_deep(flags) else ())
    if name in _WRITES_BEHIND_FIRST:
        return Files((), arguments[1:], swept=arguments[1:] if _is_deep(flags) else ())
    if name in _COPIES:
        return _copied(words, arguments, flags)
    if name == "sed":
        return _edited(arguments, flags)
    if name == "dd":
        return _by_operand(words)
    return NO_FILES


def _split(words: Sequence[Word]) -> tuple[tuple[Word, ...], frozenset[str]]:
    arguments: list[Word] = []
    flags: set[str] = set()
    for at, word in enumerate(words):
        if word.value == "--":
            arguments.extend(words[at + 1 :])
            break
        if word.value.startswith("-") and len(word.value) > 1:
            flags.add(word.value)
        else:
            arguments.append(word)
    return tuple(arguments), frozenset(flags)


def _is_deep(flags: frozenset[str]) -> bool:
    return any(map(_DEEP.match, flags))


def _searched(name: str, arguments: tuple[Word, ...], flags: frozenset[str]) -> Files:
    has_pattern = any(flag.startswith(("-e", "-f", "--regexp", "--file")) for flag in flags)
    read = arguments if has_pattern else arguments[1:]
    if name in _SEARCHES or (name.endswith("grep") and _is_deep(flags)):
        return Files(read, (), read or (_HERE,))
    return Files(read, ())


def _copied(words: Sequence[Word], arguments: tuple[Word, ...], flags: frozenset[str]) -> Files:
    """The last argument, or the directory that -t names, is written; the others are read."""
    target, sources = arguments[-1:], arguments[:-1]
    for at, word in enumerate(words):
        found = _INTO.match(word.value)
        if found is not None:
            target, sources = (word._replace(value=found["folder"]),), arguments
        elif word.value in ("-t", "--target-directory") and at + 1 < len(words):
            target = (words[at + 1],)
            sources = tuple(word for word in arguments if word is not target[0])
    return Files(sources, (*target, *_landed((*sources, *target))), sources if _is_deep(flags) else ())


def _landed(arguments: tuple[Word, ...]) -> tuple[Word, ...]:
    """Where each file ends if the last argument is a directory."""
    if len(arguments) < 2:
        return ()
    *sources, folder = arguments
    names = ((word, word.value.rstrip("/").rsplit("/", 1)[-1]) for word in sources)
    return tuple(
        folder._replace(value=f"{folder.value}/{name}", traits=folder.traits | word.traits)
        for word, name in names
        if name not in ("", ".", "..")
    )


def _edited(arguments: tuple[Word, ...], flags: frozenset[str]) -> Files:
    behind = arguments if any(flag.startswith(("-e", "--expression", "-f")) for flag in flags) else arguments[1:]
    in_place = any(flag.startswith("--in-place") or (flag[1:2] != "-" and "i" in flag) for flag in flags)
    return Files((), behind) if in_place else Files(behind, ())


def _by_operand(words: Sequence[Word]) -> Files:
    read = tuple(word._replace(value=word.value[3:]) for word in words if word.value.startswith("if="))
    written = tuple(word._replace(value=word.value[3:]) for word in words if word.value.startswith("of="))
    return Files(read, written)
