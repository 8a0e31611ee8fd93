"""Whether a simple command provably only reads, and only inside the allowed directories. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retinue.tools.shell.analysis.arguments import SCANNED, UNSCANNED
from retinue.tools.shell.analysis.environment import is_safe
from retinue.tools.shell.analysis.feeding import feeds_names
from retinue.tools.shell.analysis.model import Part, Place, Redirect, Shell, Trait, Word
from retinue.tools.shell.analysis.paths import candidates, looks_outside, outside
from retinue.tools.shell.analysis.table import Entry, NotListed, Table, scan

_OPAQUE = Trait.EXPANSION | Trait.SUBSTITUTION | Trait.ANSI | Trait.BRACE | Trait.EQUALS
_MORE_THAN_LETTERS = _OPAQUE | Trait.GLOB
_DUPLICATES = frozenset((">&", "<&"))
_WRITES = frozenset((">", ">>", "&>", "&>>", ">|"))
_TAKES_NAMES = frozenset(("paths", "first-text", "text"))
_TAKES_ANY_NAME = frozenset(("basename", "dirname"))
"""Without flags that reach a file."""
_XARGS_FLAG = re.compile(r"-[0rt]+|-[nPL][0-9]+|--null|--no-run-if-empty|--max-args=[0-9]+")
_BY_NUL = re.compile(r"-[rt]*0[rt0]*\Z|--null\Z")
_RUNS_MORE = re.compile(r"%[-+ ]?G|%\(\*?(?:signature|describe)")
"""Placeholders for which git starts a program to verify signatures, or itself again."""
_ANCHORED = re.compile(r"[A-Za-z0-9_./]")
_ONLY_ZSH = frozenset(("where", "whence", "noglob"))


def why_not(part: Part, where: Place, table: Table, shell: Shell, before: Part | None = None) -> str | None:
    """The first thing that keeps this command from being approved unasked; None when nothing does.

    `before` is the command whose output it reads.
    """
    for redirect in part.raw.redirects:
        if not is_free(redirect):
            return f"redirect {redirect.operator}{redirect.target}"
    for assignment in part.assignments:
        if not is_safe(assignment):
            return f"variable {assignment.value.partition('=')[0]}"
    if not part.words:
        return "an assignment outlives the command" if part.assignments else "no command"
    for word in part.words:
        if word.traits & _MORE_THAN_LETTERS and (why := _unforeseen(word, where)) is not None:
            return why
    words = part.inner
    if words is not part.words and any(word.value == "nohup" for word in part.words[: -len(words)]):
        return "nohup may write its file"
    if words[0].value == "xargs":
        return _xargs(words[1:], where, table, before)
    return _command(words, where, table, shell)


def _unforeseen(word: Word, where: Place) -> str | None:
    return f"{word.raw} is known only when it runs" if word.traits & _OPAQUE else looks_outside(word, where)


def is_free(redirect: Redirect) -> bool:
    """Copies of a descriptor, and output that goes nowhere."""
    if redirect.operator in _DUPLICATES:
        return redirect.target in ("0", "1", "2", "-")
    return redirect.operator in _WRITES and redirect.target == "/dev/null"


def _command(words: Sequence[Word], where: Place, table: Table, shell: Shell) -> str | None:
    program = words[0]
    if not program.literal:
        return "the program is known only when it runs"
    if program.value in _ONLY_ZSH and shell != "zsh":
        return f"{program.value} is no command of {shell}"
    entry = table.get(program.value)
    if entry is None or " " in program.value:
        return f"{program.value} is not in the table"
    rest = words[1:]
    if program.value == "git" and not all(map(where.ours, where.bases)):
        return "git would use another repository than the workspace's, and run what that one configures"
    if entry.sub:
        return _sub_command(entry, rest, where, table)
    return _against(entry, rest, where)


def _xargs(words: Sequence[Word], where: Place, table: Table, before: Part | None) -> str | None:
    """A reader that is given names found in the tree, and that no name could make write or run anything."""
    if before is None:
        return "xargs with names from anywhere"
    at = 0
    while at < len(words) and words[at].value.startswith("-"):
        if not _XARGS_FLAG.fullmatch(words[at].value):
            return f"{words[at].raw} is not listed for xargs"
        at += 1
    inner = table.get(words[at].value) if at < len(words) else None
    if inner is None or inner.globs != "any" or inner.args not in _TAKES_NAMES:
        return "xargs runs what is not a plain reader"
    if inner.name not in _TAKES_ANY_NAME:
        fed = feeds_names(before, table)
        if fed is None or not any(_BY_NUL.match(word.value) for word in words[:at]):
            return "xargs with names that may be others: only plain files are, found with NUL behind each"
        if fed == "any" and words[-1].value != "--":
            return "xargs with names that may be flags: end with --, or name a folder to search"
    return _against(inner, words[at + 1 :], where)


def _sub_command(entry: Entry, words: Sequence[Word], where: Place, table: Table) -> str | None:
    if any(_RUNS_MORE.search(word.value) for word in words):
        return f"{entry.name}: a format that runs another program"
    at = 0
    while at < len(words) and words[at].value.startswith("-"):
        flag = words[at].value
        inner = table.get(f"{entry.name} {flag}")
        if inner is not None:
            return _against(inner, words[at + 1 :], where)
        if flag not in entry.flags:
            return f"{flag} is not listed for {entry.name}"
        at += 1
    if at >= len(words):
        return f"{entry.name} without a sub-command"
    inner = table.get(f"{entry.name} {words[at].value}")
    if inner is None:
        return f"{entry.name} {words[at].raw} is not in the table"
    return _against(inner, words[at + 1 :], where)


def may_become_flag(entry: Entry, words: Sequence[Word]) -> Word | None:
    """The first glob that might find a file named like a flag which the command must not have."""
    if entry.globs == "any":
        return None
    globs = (word for word in words if word.traits & Trait.GLOB)
    return next((word for word in globs if entry.globs == "no" or not _ANCHORED.match(word.raw)), None)


def _finds_flag(word: Word, where: Place) -> bool:
    """Whether a glob that begins in the working directory finds a name that begins like a flag."""
    if _ANCHORED.match(word.raw):
        return False
    return any(path is None or "/-" in path for path in candidates(word, where))


def _against(entry: Entry, words: Sequence[Word], where: Place) -> str | None:
    if entry.responses and any(word.value.startswith("@") for word in words):
        return f"{entry.name} reads flags from a file"
    flag = may_become_flag(entry, words)
    if flag is not None:
        return f"{flag.raw} may become a flag of {entry.name}"
    unscanned = UNSCANNED.get(entry.args)
    if unscanned is not None:
        why = unscanned(words, where)
        return None if why is None else f"{entry.name}: {why}"
    globs = [word for word in words if word.traits & Trait.GLOB]
    if globs and entry.args != "text" and any(_finds_flag(word, where) for word in globs):
        return f"a glob finds a name that {entry.name} takes for a flag"
    try:
        scanned = scan(entry, words)
    except NotListed as word:
        return f"{word} is not listed for {entry.name}"
    for file in scanned.files:
        if (why := outside(file, where)) is not None:
            return f"{entry.name}: {why}"
    why = SCANNED[entry.args](entry, scanned, where)
    return None if why is None else f"{entry.name}: {why}"
