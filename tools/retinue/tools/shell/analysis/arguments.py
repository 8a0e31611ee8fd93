"""What the arguments of a command may be: one rule for each `args` of the table. Pure.

A rule answers why it does not vouch for a command line; None when it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from retinue.tools.shell.analysis import sedscript
from retinue.tools.shell.analysis.model import Place, Trait, Word, names
from retinue.tools.shell.analysis.paths import candidates, outside
from retinue.tools.shell.analysis.table import Entry, Scanned

Rule = Callable[[Entry, Scanned, Place], str | None]
Words = Sequence[Word]

_PRINTF_SETS = re.compile(r"%[^%A-Za-z]*[hlLjztq]*n")
_FORMATS_TEXT = re.compile(r"%%|%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sbqc]")
_BSD_PS = re.compile(r"[auxwfljT]+\Z|\d+\Z")
_VERSION = frozenset((("version",), ("-version",), ("--version",), ("-v",), ("-V",)))
_JQ_STRING = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"?')
_JQ_WORD = re.compile(r"(?<![.\w$])(?:env|import|include|input_filename|system|modulemeta)\b|\$ENV|\$__")
_LISTS = frozenset(("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"))
_READS_CONFIG = frozenset(("--get", "--get-all", "--get-regexp", "--list", "-l"))
_UPWARD = re.compile(r"(?:^|[/:!^)])\.\.(?:/|\Z)")
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+[smhd]?\Z")
_TAR_LIST = re.compile(r"-?(?=[vzjJ]*t)[tvzjJ]*f\Z")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*(?:\.[^\s=]+)+\Z")
_IP_SHOWS = frozenset(
    (verb, *more)
    for verb in ("a", "addr", "address", "r", "route", "l", "link", "n", "neigh")
    for more in ((), ("show",), ("list",))
)

_FIND_PLAIN = names(
    """
    -print -print0 -ls -prune -depth -d -xdev -mount -empty -true -false -daystart -readable -writable -executable
    -nouser -nogroup -noleaf -not -a -and -o -or ! ( ) , -quit -nowarn -warn
    """
)
_FIND_VALUE = names(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -atime
    -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -links -inum -fstype -lname -ilname
    -used -printf -newermt -newerat -newerct
    """
)
_FIND_FILE = frozenset(("-newer", "-anewer", "-cnewer", "-samefile", "-newermm", "-newerma", "-newerac"))

_TEST_FILE = frozenset(f"-{letter}" for letter in "efdrwxsLhbcpSOGNkgu")
_TEST_TEXT = frozenset(("-n", "-z"))
_TEST_COMPARES = frozenset(("=", "==", "!=", "<", ">"))
_TEST_NUMBERS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_TEST_FILES = frozenset(("-nt", "-ot", "-ef"))
_UNZIP_LISTS = re.compile(r"-(?:l|v|lv|Z1?)\Z")
_ZIPINFO_FLAGS = re.compile(r"-[12smlvhtTz]+\Z")
_REFLOG_CHANGES = frozenset(("expire", "delete", "drop", "write"))
_INTEGER = re.compile(r"-?[0-9]+\Z")


def _none(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    return f"{scanned.arguments[0].raw} is not listed" if scanned.arguments else None


def _flag(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    """Programs that without a flag would run what they read."""
    return None if scanned.flags and not scanned.arguments else "only its version is listed"


def _numeric(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    if "-n" in scanned.flags or "--numeric" in scanned.flags:
        return _none(entry, scanned, where)
    return "names of machines would be looked up: only with -n"


def _text(_entry: Entry, _scanned: Scanned, _where: Place) -> str | None:
    return None


def _all_inside(words: Words, where: Place) -> str | None:
    for word in words:
        why = outside(word, where)
        if why is not None:
            return why
    return None


def _paths(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    return _too_many(entry, scanned) or _all_inside(scanned.arguments, where)


def _too_many(entry: Entry, scanned: Scanned) -> str | None:
    """A glob may find more than one."""
    if entry.max is None or not scanned.arguments:
        return None
    last = scanned.arguments[-1]
    many = len(scanned.arguments) > entry.max or any(word.traits & Trait.GLOB for word in scanned.arguments)
    return f"{last.raw} would be written" if many else None


def _behind_first(words: Words) -> Words:
    """What is read when the first argument is a text. A glob there may find more, and all but one of them are read."""
    return words if words and words[0].traits & Trait.GLOB else words[1:]


def _diff(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    why = _paths(entry, scanned, where)
    if why is not None or "--no-dereference" in scanned.flags:
        return why
    deep = "-r" in scanned.flags or "--recursive" in scanned.flags
    if deep or any(_is_folder(word, where) for word in (*scanned.arguments, *scanned.files)):
        return "of directories it would follow links: only with --no-dereference"
    return None


def _is_folder(word: Word, where: Place) -> bool:
    found = (path for path in candidates(word, where) if path is not None)
    return any(next(iter(where.below(path)), "") != "" for path in found)


def _lsof(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    texts = (*(word.value for word in scanned.arguments), *(value for _, value in scanned.values))
    if any("@" in text for text in texts):
        return "a machine's name would be looked up"
    return _paths(entry, scanned, where)


def _first_text(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    taken = not entry.first.isdisjoint(scanned.flags)
    return _all_inside(scanned.arguments if taken else _behind_first(scanned.arguments), where)


def _revisions(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    return _too_many(entry, scanned) or _no_way_out(scanned.arguments, where)


def _no_way_out(words: Words, where: Place) -> str | None:
    """Names of commits and paths alike: only those that could lead outside are looked at as paths."""
    for word in words:
        if word.value.startswith(("/", ":/")) or word.traits & Trait.TILDE or _UPWARD.search(word.value):
            why = outside(word, where)
            if why is not None:
                return why
    return None


def _first_revision(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    taken = not entry.first.isdisjoint(scanned.flags)
    return _no_way_out(scanned.arguments if taken else _behind_first(scanned.arguments), where)


def _listing(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    """An argument names a pattern where a flag asks for a list; without one it would make a branch or tag."""
    if scanned.arguments and _LISTS.isdisjoint(scanned.flags):
        return f"{scanned.arguments[0].raw} would be made"
    return None


def _tag(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    return None if "-l" in scanned.flags else _listing(entry, scanned, where)


def _begins_with(*words: str) -> Rule:
    allowed = frozenset(words)

    def rule(_entry: Entry, scanned: Scanned, where: Place) -> str | None:
        first = scanned.first.value if scanned.first is not None else ""
        if first not in allowed:
            return f"{first or 'without an argument it'} is not listed"
        return _no_way_out(scanned.arguments[1:], where)

    return rule


def _remote(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    if scanned.arguments and scanned.arguments[0].value != "get-url":
        return f"{scanned.arguments[0].raw} is not listed"
    return None


def _reflog(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    if any(value in _REFLOG_CHANGES for _, value in scanned.values):
        return "git may take the value of a flag for what is to be done"
    if not scanned.arguments:
        return None
    first = scanned.arguments[0].value
    return None if first in ("show", "list", "HEAD") or "@{" in first or "/" in first else f"{first} is not listed"


def _config(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    if not scanned.flags and len(scanned.arguments) == 1:
        (key,) = scanned.arguments
        return None if key.literal and _KEY.match(key.value) else "it may write a setting"
    return "it would write a setting" if _READS_CONFIG.isdisjoint(scanned.flags) else None


def _sed(entry: Entry, scanned: Scanned, where: Place) -> str | None:
    scripts = [value for name, value in scanned.values if name in entry.first]
    arguments = scanned.arguments
    if not scripts:
        if not arguments:
            return "no script"
        scripts, arguments = [arguments[0].value], arguments[1:]
    if not all(sedscript.is_harmless(script) for script in scripts):
        return "a sed script that is not of the known forms"
    return _all_inside(arguments, where)


def jq_code(filter_text: str) -> str:
    """A jq filter without its literals; whole where one holds code, or a comment may, since its end is then unsure."""
    return filter_text if "\\(" in filter_text or "#" in filter_text else _JQ_STRING.sub("", filter_text)


def _numbers(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    return None if all(_NUMBER.match(word.value) for word in scanned.arguments) else "no number"


def _jq(_entry: Entry, scanned: Scanned, where: Place) -> str | None:
    if any(_JQ_WORD.search(jq_code(word.value)) for word in scanned.arguments[:1]):
        return "a filter that reaches out of the document"
    return _all_inside(_behind_first(scanned.arguments), where)


def _date(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    wrong = next((word for word in scanned.arguments if not word.value.startswith("+")), None)
    return f"{wrong.raw} would set the time" if wrong is not None else None


def _ps(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    if any("env" in value.casefold() for _, value in scanned.values):
        return "the environment of processes"
    wrong = next((word for word in scanned.arguments if not _BSD_PS.match(word.value)), None)
    return f"{wrong.raw} is not listed" if wrong is not None else None


def _query(_entry: Entry, scanned: Scanned, _where: Place) -> str | None:
    return None if "-v" in scanned.flags or "-V" in scanned.flags else "it would run its arguments"


SCANNED: dict[str, Rule] = {
    "none": _none,
    "flag": _flag,
    "numeric": _numeric,
    "text": _text,
    "paths": _paths,
    "lsof": _lsof,
    "diff": _diff,
    "first-text": _first_text,
    "rg": _first_text,
    "revisions": _revisions,
    "first-revision": _first_revision,
    "branch": _listing,
    "tag": _tag,
    "remote": _remote,
    "stash": _begins_with("list", "show"),
    "worktree": _begins_with("list"),
    "submodule": _begins_with("status"),
    "reflog": _reflog,
    "config": _config,
    "sed": _sed,
    "jq": _jq,
    "date": _date,
    "ps": _ps,
    "query": _query,
    "number": _numbers,
}


def _anything(_words: Words, _where: Place) -> str | None:
    return None


def _printf(words: Words, _where: Place) -> str | None:
    """Formats of texts with anything, others with literal numbers only: a shell may calculate what stands for one."""
    if not words or words[0].value.startswith("-") or not words[0].literal:
        return "a format that may set a variable"
    other = _FORMATS_TEXT.sub("", words[0].value)
    if "%" in other and (_PRINTF_SETS.search(other) or not all(_INTEGER.match(word.value) for word in words[1:])):
        return "a format that may set a variable, or a number that may be a program"
    return None


def _tar(words: Words, where: Place) -> str | None:
    if len(words) < 2 or not _TAR_LIST.match(words[0].value) or any(word.value[:1] == "-" for word in words[1:]):
        return "only plain listings are known"
    return _all_inside(words[1:], where) or ("an archive on another machine" if ":" in words[1].value else None)


def _unzip(words: Words, where: Place) -> str | None:
    """Flags count only before the archive."""
    if not words or not _UNZIP_LISTS.match(words[0].value):
        return "only plain listings are known"
    return _archive(words[1:], where)


def _zipinfo(words: Words, where: Place) -> str | None:
    if words and words[0].value[:1] == "-" and not _ZIPINFO_FLAGS.match(words[0].value):
        return "only plain listings are known"
    return _archive(words[1:] if words and words[0].value[:1] == "-" else words, where)


def _archive(words: Words, where: Place) -> str | None:
    """The archive, then names in it. A pattern in the archive's name is one for the program, quoted or not."""
    if any(word.value[:1] == "-" for word in words):
        return "flags stand before the archive"
    if words and set(words[0].value) & set("*?["):
        return "it looks for archives by a pattern of its own"
    return _all_inside(words, where)


def _ip(words: Words, _where: Place) -> str | None:
    said = tuple(word.value for word in words)
    if said[:1] in (("-4",), ("-6",), ("-br",), ("-brief",), ("-c",), ("-s",), ("-j",)):
        said = said[1:]
    return None if said in _IP_SHOWS else "only the forms that show are known"


def _version_words(words: Words, _where: Place) -> str | None:
    return None if tuple(word.value for word in words) in _VERSION else "only its version is listed"


def _find(words: Words, where: Place) -> str | None:
    at = 0
    while at < len(words) and words[at].value in ("-H", "-P"):
        at += 1
    while at < len(words) and words[at].value[:1] not in ("-", "(", "!", ")", ","):
        why = outside(words[at], where)
        if why is not None:
            return why
        at += 1
    return _find_expression(words, at, where)


def _find_expression(words: Words, at: int, where: Place) -> str | None:
    while at < len(words):
        word = words[at].value
        at += 1
        if word in _FIND_PLAIN:
            continue
        if at >= len(words) or not (word in _FIND_VALUE or word in _FIND_FILE):
            return f"{word} is not listed"
        if word in _FIND_FILE and (why := outside(words[at], where)) is not None:
            return why
        at += 1
    return None


def _test(words: Words, where: Place) -> str | None:
    if words and words[-1].value == "]":
        words = words[:-1]
    if any(word.traits & Trait.GLOB for word in words):
        return "a glob may find other conditions"
    if words and words[0].value == "!":
        words = words[1:]
    match [word.value for word in words]:
        case [] | [_]:
            return None
        case [operator, _] if operator in _TEST_TEXT:
            return None
        case [operator, _] if operator in _TEST_FILE:
            return outside(words[1], where)
        case [_, operator, _] if operator in _TEST_COMPARES:
            return None
        case [left, operator, right] if operator in _TEST_NUMBERS:
            return None if _INTEGER.match(left) and _INTEGER.match(right) else "a number that may be a program"
        case [_, operator, _] if operator in _TEST_FILES:
            return _all_inside((words[0], words[2]), where)
        case _:
            return "a condition that is not listed"


UNSCANNED: dict[str, Callable[[Words, Place], str | None]] = {
    "anything": _anything,
    "cd": _anything,  # where it leads is judged where the whole text is known
    "printf": _printf,
    "version-words": _version_words,
    "find": _find,
    "tar": _tar,
    "unzip": _unzip,
    "zipinfo": _zipinfo,
    "ip": _ip,
    "test": _test,
}
"""Rules for commands that do not follow the usual form of flags."""
