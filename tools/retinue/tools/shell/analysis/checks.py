"""The named checks: patterns over the text, which know nothing of the tree. Pure.

They are the second line. A hit means a question even where the tree proved a command harmless, so each looks only
where the shell would act: a literal in single quotes raises nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from retinue.tools.shell.analysis.arguments import jq_code
from retinue.tools.shell.analysis.model import UNPRINTABLE, Part, Reason, Trait, names
from retinue.tools.shell.analysis.quoting import Variants, variants


class Check(enum.IntEnum):
    """Numbers for logs, which never carry a command's text."""

    INCOMPLETE_COMMANDS = 1
    JQ_SYSTEM_FUNCTION = 2
    JQ_FILE_ARGUMENTS = 3
    OBFUSCATED_FLAGS = 4
    SHELL_METACHARACTERS = 5
    DANGEROUS_VARIABLES = 6
    NEWLINES = 7
    COMMAND_SUBSTITUTION = 8
    INPUT_REDIRECTION = 9
    OUTPUT_REDIRECTION = 10
    IFS_INJECTION = 11
    GIT_COMMIT_SUBSTITUTION = 12
    PROC_ENVIRON_ACCESS = 13
    MALFORMED_TOKEN_INJECTION = 14
    BACKSLASH_ESCAPED_WHITESPACE = 15
    BRACE_EXPANSION = 16
    CONTROL_CHARACTERS = 17
    UNICODE_WHITESPACE = 18
    MID_WORD_HASH = 19
    ZSH_DANGEROUS_COMMANDS = 20
    BACKSLASH_ESCAPED_OPERATORS = 21
    COMMENT_QUOTE_DESYNC = 22
    QUOTED_NEWLINE = 23


BREAKS: frozenset[int] = frozenset(
    (
        Check.INCOMPLETE_COMMANDS,
        Check.MALFORMED_TOKEN_INJECTION,
        Check.CONTROL_CHARACTERS,
        Check.UNICODE_WHITESPACE,
    )
)
"""After one of these nobody knows what the text says: no rule covers it."""

OPAQUE: frozenset[int] = BREAKS | {
    Check.DANGEROUS_VARIABLES,
    Check.COMMAND_SUBSTITUTION,
    Check.IFS_INJECTION,
    Check.GIT_COMMIT_SUBSTITUTION,
    Check.PROC_ENVIRON_ACCESS,
    Check.ZSH_DANGEROUS_COMMANDS,
}
"""After one of these what runs is known only when it runs: no prefix rule covers it, and none is offered."""

SUBSTITUTIONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<\("), "process substitution <()"),
    (re.compile(r">\("), "process substitution >()"),
    (re.compile(r"=\("), "zsh process substitution =()"),
    (re.compile(r"(?:^|[\s;&|(])=[a-zA-Z_]"), "zsh equals expansion =cmd"),
    (re.compile(r"\$\("), "command substitution $()"),
    (re.compile(r"\$\{"), "parameter substitution ${}"),
    (re.compile(r"\$\["), "legacy arithmetic expansion $[]"),
    (re.compile(r"~\["), "zsh parameter expansion ~[]"),
    (re.compile(r"\(e:"), "zsh glob qualifier (e:)"),
    (re.compile(r"\(\+"), "zsh glob qualifier (+)"),
    (re.compile(r"\}\s*always\s*\{"), "zsh always block"),
    (re.compile(r"<#"), "PowerShell comment <#"),
)
_IN_DOUBLE_QUOTES_TOO = frozenset(("command substitution $()", "parameter substitution ${}"))

ZSH_DANGEROUS = names(
    """
    zmodload emulate sysopen sysread syswrite sysseek zpty ztcp zsocket mapfile zf_rm zf_mv zf_ln zf_chmod zf_chown
    zf_chgrp zf_mkdir zf_rmdir
    """
)


_UNICODE_BLANK = re.compile(
    r"[\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\u00ad\u115f\u1160\u2800\u3164\uffa0]"
)
_STARTS_IN_THE_MIDDLE = re.compile(r"\s*(?:[;|&)}]|-(?! ))")
"""A lone dash is no flag: zsh runs what follows it."""
_ENDS_IN_THE_MIDDLE = re.compile(r"(?:&&|\|\||\||\\|[<>])\s*\Z")
_UNCLOSED = re.compile(r"""(?:\\[\s\S]|'[^']*'|"(?:[^"\\]++|\\[\s\S])*+"|\#(?<=[\s;&|]\#)[^\n]*|[^'"\\])*+""")
_JQ_SYSTEM = re.compile(r"\bsystem\s*\(")
_JQ_REACHES_OUT = re.compile(
    r"(?<![.\w$])(?:env|import|include|input_filename|get_search_list|modulemeta)\b|\$ENV\b|\$__"
)
_JQ_FILE_FLAGS = re.compile(r"-[a-zA-Z]*[fL]|--(?:from-f|sl|raw-?f|rawf|argf|lib|run-|jsonar|args)", re.ASCII)
_FLAG_VALUE = re.compile(r"(?:^|\s)(?:--?[A-Za-z0-9][A-Za-z0-9-]*=|-[A-Za-z0-9]{1,2})$")
_BACKGROUND = re.compile(r"(?<![&|<>])&(?![&>])|\|&|;;|;&|<>|>\||&>>?")
_VARIABLE_AT_OPERATOR = re.compile(r"[<>|]\s*\"?\$[A-Za-z_{]|\$(?:[A-Za-z_]\w*|\{\w+\})\"?\s*[|<>]")
_NEWLINE = re.compile(r"\n\s*\S")
_BACKTICK = re.compile(r"(?<!\\)(?:\\\\)*`")
_SAFE_REDIRECT = re.compile(r"(?<![\w$}\])])(?:\d*>>?\s*/dev/null|&>>?\s*/dev/null|\d*>&\s*[012])(?=[\s;|&)]|\Z)")
_IFS = re.compile(r"\$IFS|\$\{[^}$]*IFS|(?:^|[\s;&|])IFS\+?=")
_BETWEEN_COMMANDS = re.compile(r"[;&|\n]")
_GIT, _COMMIT = re.compile(r"\bgit\b"), re.compile(r"\bcommit\b")
_PROC_GLOB = re.compile(r"/proc/(?:[^\s/*?]++/)*+[*?]")
_BRACE_LIST = re.compile(r"(?<![\\$])\{(?=[^{}\s]*+\})[^{}\s]*?(?:,|\.\.)|\{[^{}\s]*+\{")
_ESCAPED_BLANK = re.compile(r"(?<!\\)(?:\\\\)*\\[ \t]")
_ESCAPED_OPERATOR = re.compile(r"(?<!\\)(?:\\\\)*\\[;|&<>]")
_HASH = re.compile(r"(?:[\"'`\\)}]|\\[\s\S])#|\$#")
_QUOTE_OR_COMMENT = re.compile(
    r"""\\[\s\S]|'[^']*'|"(?:[^"\\]++|\\[\s\S])*+"|(?:(?<=[\s;&|])|\A)(?P<comment>\#[^\n]*)"""
)
_QUOTED_SPAN = re.compile(r"""\\[\s\S]|'[^']*'|"(?:[^"\\]++|\\[\s\S])*+\"""")
_NEWLINE_THEN_HASH = re.compile(r"\n[^\S\n]*+#")


class Text(NamedTuple):
    """A command as the checks see it."""

    text: str
    without: Variants
    bare: str
    """Outside all quotes, and without what a backslash takes the meaning of."""
    parts: Sequence[Part]


Due = tuple[Check, Callable[[Text], str | None]]


@lru_cache(maxsize=512)
def _due(letters: frozenset[str]) -> tuple[Due, ...]:
    """The checks that a text with these letters among others may fail."""
    return tuple((check, find) for check, needed, find in _CHECKS if not needed.isdisjoint(letters))


def run_checks(text: str, parts: Sequence[Part]) -> list[Reason]:
    """All hits, in the order of their numbers."""
    due = _due(_TELLING.intersection(text))
    if not text.isascii() or not text.isprintable():
        due = tuple(sorted((*due, *_UNPRINTABLE), key=itemgetter(0)))
    if not due:
        return []
    without = variants(text)
    bare = re.sub(r"\\[\s\S]", "", without.unquoted) if "\\" in without.unquoted else without.unquoted
    seen = Text(text, without, bare, parts)
    return [Reason("check", int(check), why) for check, find in due if (why := find(seen)) is not None]


def _incomplete(seen: Text) -> str | None:
    if _STARTS_IN_THE_MIDDLE.match(seen.text):
        return "begins in the middle of a command"
    if _ENDS_IN_THE_MIDDLE.search(seen.bare.rstrip(" \t") or " ") or seen.text.endswith("\\"):
        return "ends in the middle of a command"
    return None


def _jq_system(seen: Text) -> str | None:
    for part in seen.parts:
        if _runs(part, "jq") and any(_JQ_SYSTEM.search(word.value) for word in part.words):
            return "jq filter with system"
    return None


def _jq_files(seen: Text) -> str | None:
    for part in seen.parts:
        if not _runs(part, "jq"):
            continue
        for word in part.words[1:]:
            if _JQ_FILE_FLAGS.match(word.value):
                return "jq reads a program or a file named by a flag"
            if _JQ_REACHES_OUT.search(jq_code(word.value)):
                return "jq filter reaches the environment or other files"
    return None


def _runs(part: Part, program: str) -> bool:
    return any(word.value.rsplit("/", 1)[-1] == program for word in part.words)


def _obfuscated(seen: Text) -> str | None:
    for part in seen.parts:
        for word in part.words:
            raw = word.raw
            if word.traits & Trait.ANSI or raw.startswith('$"'):
                return "quoting that hides letters"
            if raw[:1] in "'\"\\" and len(word.value) > 1 and word.value[0] == "-" and word.value[1].isalpha():
                return "a flag in quotes"
            if raw[:1] == "-" and word.value[:1] == "-" and _quote_in_flag(raw):
                return "quotes inside a flag"
    return None


def _quote_in_flag(raw: str) -> bool:
    """Quotes around a value are usual (`--grep='x'`, `-n'5'`); inside a flag's letters they hide it."""
    at = min((raw.find(c) for c in "'\"\\" if c in raw), default=-1)
    if at < 0:
        return False
    if raw.startswith("--") and "=" in raw[:at]:
        return False
    return _FLAG_VALUE.search(raw[:at]) is None or raw[at - 1] == "-"


def _metacharacters(seen: Text) -> str | None:
    found = _BACKGROUND.search(_SAFE_REDIRECT.sub("", seen.bare))
    return f"operator {found[0]}" if found else None


def _variables(seen: Text) -> str | None:
    if "$" in seen.without.with_double and _VARIABLE_AT_OPERATOR.search(seen.without.with_double):
        return "a variable next to a pipe or redirect"
    return None


def _newlines(seen: Text) -> str | None:
    return "several lines" if "\n" in seen.bare and _NEWLINE.search(seen.bare.strip()) else None


def _substitution(seen: Text) -> str | None:
    kept = seen.without.with_double
    if _BACKTICK.search(kept):
        return "command substitution ``"
    for pattern, name in SUBSTITUTIONS:
        where = kept if name in _IN_DOUBLE_QUOTES_TOO else seen.bare
        found = pattern.search(where)
        if found is not None and not _escaped(where, found.start()):
            return name
    return None


def _escaped(text: str, at: int) -> bool:
    backslashes = 0
    while at - backslashes > 0 and text[at - backslashes - 1] == "\\":
        backslashes += 1
    return backslashes % 2 == 1


def _input(seen: Text) -> str | None:
    return "input redirection" if "<" in seen.bare else None


def _output(seen: Text) -> str | None:
    if ">" not in seen.bare:
        return None
    return "output redirection" if ">" in _SAFE_REDIRECT.sub(" ", seen.bare) else None


def _ifs(seen: Text) -> str | None:
    return "IFS" if _IFS.search(seen.without.with_double) else None


def _git_commit(seen: Text) -> str | None:
    kept = seen.without.with_double
    if "commit" not in kept or not ("$(" in kept or "`" in kept or "${" in kept):
        return None
    for piece in _BETWEEN_COMMANDS.split(kept):
        if (git := _GIT.search(piece)) is not None and _COMMIT.search(piece, git.end()) is not None:
            return "git commit with a substitution"
    return None


def _proc_environ(seen: Text) -> str | None:
    for part in seen.parts:
        for word in part.words:
            if (why := _proc_environ_text(word.value)) is not None:
                return why
    return _proc_environ_text(seen.without.with_double)


def _proc_environ_text(text: str) -> str | None:
    if "/proc/" not in text:
        return None
    named = any("environ" in line.partition("/proc/")[2] for line in text.splitlines())
    return "environment of a process" if named or _PROC_GLOB.search(text) else None


def _malformed(seen: Text) -> str | None:
    whole = _UNCLOSED.match(seen.text)
    if whole is not None and whole.end() != len(seen.text) and not seen.text.endswith("\\"):
        return "an unclosed quote"
    return None


def _escaped_blank(seen: Text) -> str | None:
    return "an escaped blank" if _ESCAPED_BLANK.search(seen.without.unquoted) else None


def _braces(seen: Text) -> str | None:
    return "brace expansion" if "{" in seen.bare and _BRACE_LIST.search(seen.without.unquoted) else None


def _control(seen: Text) -> str | None:
    return "a control or invisible character" if UNPRINTABLE.search(seen.text) else None


def _unicode(seen: Text) -> str | None:
    return "a blank that is not ASCII" if not seen.text.isascii() and _UNICODE_BLANK.search(seen.text) else None


def _hash(seen: Text) -> str | None:
    return "a hash behind a quote or an escape" if "#" in seen.bare and _HASH.search(seen.without.keep_quotes) else None


def _zsh(seen: Text) -> str | None:
    for part in seen.parts:
        if part.program in ZSH_DANGEROUS or (_leads(part) and any(word.value in ZSH_DANGEROUS for word in part.words)):
            return "a zsh module command"
    return None


def _leads(part: Part) -> bool:
    return part.program in ("command", "builtin", "exec", "noglob", "nocorrect", "-", "time", "eval", "env")


def _escaped_operator(seen: Text) -> str | None:
    return "an escaped operator" if _ESCAPED_OPERATOR.search(seen.without.unquoted) else None


def _comment(seen: Text) -> str | None:
    if "#" not in seen.text:
        return None
    for found in _QUOTE_OR_COMMENT.finditer(seen.text):
        comment = found["comment"]
        if comment is not None and any(quote in comment for quote in "'\"`"):
            return "quotes in a comment"
    return None


def _quoted_newline(seen: Text) -> str | None:
    if "\n" not in seen.text:
        return None
    for found in _QUOTED_SPAN.finditer(seen.text):
        if found[0][0] != "\\" and _NEWLINE_THEN_HASH.search(found[0]):
            return "a quoted line that begins with a hash"
    return None


_OPERATORS = "&|;<>(){}\\"
_QUOTES = "'\"\\"
_CHECKS: tuple[tuple[Check, frozenset[str], Callable[[Text], str | None]], ...] = tuple(
    (check, frozenset(needed), find)
    for check, needed, find in (
        (Check.INCOMPLETE_COMMANDS, f"{_OPERATORS}-", _incomplete),
        (Check.JQ_SYSTEM_FUNCTION, "q", _jq_system),
        (Check.JQ_FILE_ARGUMENTS, "q", _jq_files),
        (Check.OBFUSCATED_FLAGS, _QUOTES, _obfuscated),
        (Check.SHELL_METACHARACTERS, "&|;<>", _metacharacters),
        (Check.DANGEROUS_VARIABLES, "$", _variables),
        (Check.NEWLINES, "\n", _newlines),
        (Check.COMMAND_SUBSTITUTION, "$`(=~<}", _substitution),
        (Check.INPUT_REDIRECTION, "<", _input),
        (Check.OUTPUT_REDIRECTION, ">", _output),
        (Check.IFS_INJECTION, "I", _ifs),
        (Check.GIT_COMMIT_SUBSTITUTION, "$`", _git_commit),
        (Check.PROC_ENVIRON_ACCESS, "p\\$", _proc_environ),
        (Check.MALFORMED_TOKEN_INJECTION, _QUOTES, _malformed),
        (Check.BACKSLASH_ESCAPED_WHITESPACE, "\\", _escaped_blank),
        (Check.BRACE_EXPANSION, "{", _braces),
        (Check.MID_WORD_HASH, "#", _hash),
        (Check.ZSH_DANGEROUS_COMMANDS, "zmes\\$", _zsh),
        (Check.BACKSLASH_ESCAPED_OPERATORS, "\\", _escaped_operator),
        (Check.COMMENT_QUOTE_DESYNC, "#", _comment),
        (Check.QUOTED_NEWLINE, "\n", _quoted_newline),
    )
)
"""Each check with the letters without any of which it can find nothing."""
_TELLING: frozenset[str] = frozenset(letter for _, needed, _ in _CHECKS for letter in needed)
_UNPRINTABLE: tuple[Due, ...] = (
    (Check.CONTROL_CHARACTERS, _control),
    (Check.UNICODE_WHITESPACE, _unicode),
)
