"""How permission rules are held against the commands of a text. Pure.

A deny or ask rule fits as soon as any reading of any command fits it; an allow rule only the words as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from retinue.tools.base import Behavior
from retinue.tools.errors import SpecError
from retinue.tools.permissions.commands import UNCOVERED, is_exact, literal, pattern_of
from retinue.tools.permissions.rules import Anchors, PathFits, Rule, parse_rule, path_matcher
from retinue.tools.shell.analysis.effects import files_of
from retinue.tools.shell.analysis.environment import is_safe
from retinue.tools.shell.analysis.model import Part, Rules, Trait, Word
from retinue.tools.shell.analysis.wrappers import NEVER_COVERED, inner_starts, is_wrapper

_OPAQUE = Trait.EXPANSION | Trait.SUBSTITUTION
_SAFE_IN_ARGUMENTS = frozenset(("$HOME", "${HOME}", "$PWD", "${PWD}"))
_FIND_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"))
_READERS = frozenset(("Read",))
_EDITORS = frozenset(("Edit", "Write", "NotebookEdit"))
_GIT_REDIRECTED = re.compile(r"-c|--(?:config-env|git-dir|work-tree|exec-path)(?:=|\Z)")
_GIT_TAKES_VALUE = frozenset(("-C", "--namespace", "--super-prefix", "--attr-source", "--list-cmds"))
_FD_RUNS = re.compile(r"--exec|-[^-detESojcC]*[xX]")


FileRules = tuple[tuple[Rule, PathFits], ...]


@dataclass(frozen=True, slots=True)
class ShellRules:
    """The rules that speak of commands, and those that speak of files that commands read or change.

    What may not be read may not be changed either, so a rule that denies reading is among both.
    """

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    deny_read: FileRules = ()
    deny_edit: FileRules = ()
    ask_read: FileRules = ()
    ask_edit: FileRules = ()

    @property
    def allows_all(self) -> Rule | None:
        """An allow rule for every command."""
        return next((rule for rule in self.allow if rule.content is None), None)

    @property
    def forbids_nothing(self) -> bool:
        """Whether only allow rules are among them."""
        return not (self.deny or self.ask or self.deny_read or self.deny_edit or self.ask_read or self.ask_edit)

    @property
    def restricts_some(self) -> bool:
        """Whether some commands are forbidden or asked about, so that one that cannot be named may be among them."""
        return any(rule.content is not None for rule in (*self.deny, *self.ask))


NO_SHELL_RULES = ShellRules()


def compile_rules(rules: Rules, cwd: str, home: str) -> ShellRules:
    """Of rules as written. A deny or ask rule that cannot be read forbids everything; such an allow rule nothing."""
    if not (rules.allow or rules.ask or rules.deny):
        return NO_SHELL_RULES
    lists: tuple[tuple[Behavior, tuple[str, ...]], ...] = (
        ("deny", rules.deny),
        ("ask", rules.ask),
        ("allow", rules.allow),
    )
    parsed = (_parsed(text, behavior) for behavior, texts in lists for text in texts)
    return shell_rules([rule for rule in parsed if rule is not None], Anchors(Path(cwd), Path(home)), _is_about_bash)


def shell_rules(rules: Iterable[Rule], anchors: Anchors, is_about: Callable[[Rule], bool]) -> ShellRules:
    """`is_about` tells the rules for the shell tool from those for others."""
    rules = tuple(rules)

    def commands(behavior: Behavior) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if rule.behavior == behavior and is_about(rule))

    def files(behavior: Behavior, tools: frozenset[str]) -> FileRules:
        about = (rule for rule in rules if rule.behavior == behavior and rule.tool in tools)
        return tuple((rule, _path_fits(rule, anchors)) for rule in about)

    return ShellRules(
        deny=commands("deny"),
        ask=commands("ask"),
        allow=commands("allow"),
        deny_read=files("deny", _READERS),
        deny_edit=files("deny", _EDITORS | _READERS),
        ask_read=files("ask", _READERS),
        ask_edit=files("ask", _EDITORS),
    )


def _path_fits(rule: Rule, anchors: Anchors) -> PathFits:
    return _any_path if rule.content is None else path_matcher(rule.content, rule.behavior, anchors, rule.base)


def _any_path(_path: str, _may_be_folder: bool) -> bool:
    return True


def _parsed(text: str, behavior: Behavior) -> Rule | None:
    try:
        return parse_rule(text, behavior)
    except SpecError:
        return None if behavior == "allow" else Rule(behavior, "Bash")


def _is_about_bash(rule: Rule) -> bool:
    return rule.tool in ("Bash", "*")


def readings(words: Sequence[Word]) -> Iterator[str]:
    """Every text that a deny or ask rule is compared with: each command that may run, as written and as resolved."""
    tails = inner_starts(words)
    whole = tails[0] if tails else ()
    raws, values = " ".join(word.raw for word in whole), " ".join(word.value for word in whole)
    raw_at = list(accumulate((len(word.raw) + 1 for word in whole), initial=0))
    value_at = list(accumulate((len(word.value) + 1 for word in whole), initial=0))
    for tail in tails:  # each is the end of the first
        behind = len(whole) - len(tail)
        raw, value = raws[raw_at[behind] :], values[value_at[behind] :]
        name = tail[0].value
        yield raw
        if value != raw:
            yield value
        base = name.rsplit("/", 1)[-1]
        rest = value[len(name) :]
        if base != name:
            yield base + rest
        if base.casefold() != base:
            yield base.casefold() + rest
        if tail[0].traits & Trait.BRACE:
            yield base.partition("{")[0] + base.partition("{")[2].partition(",")[0].rstrip("}") + rest


def first_fitting(rules: Sequence[Rule], commands: Iterable[Sequence[Word]]) -> Rule | None:
    """The first rule that fits any reading of any of these commands."""
    if not rules:
        return None
    if (whole := next((rule for rule in rules if rule.content is None), None)) is not None:
        return whole
    texts = {text for words in commands for text in readings(words)}
    for rule in rules:
        pattern = pattern_of(rule.content or "")
        if any(pattern.fullmatch(text) for text in texts):
            return rule
    return None


def covering(rules: ShellRules, part: Part) -> Rule | None:
    """The allow rule that covers this one command; it never covers where its redirects go."""
    words = part.words
    if not words or not words[0].literal or any(_hides(word) for word in words[1:]):
        return None
    inner = part.inner
    if any(word.value.rsplit("/", 1)[-1] in UNCOVERED for word in (words[0], inner[0])):
        return None
    if not all(is_safe(assignment) for assignment in part.assignments):
        return next((rule for rule in rules.allow if _names(rule.content or "", part.source)), None)
    texts = {_source(words), _source(inner)}
    if inner[0].value == "xargs" and not never_by_prefix(inner):
        texts.add(_source(inner[1:]))
    return next((rule for rule in rules.allow if _covers(rule, part, inner, texts)), None)


def _names(content: str, text: str) -> bool:
    """Whether a rule is for exactly this text."""
    return is_exact(content) and literal(content) == text


def _source(words: Sequence[Word]) -> str:
    return " ".join(word.raw for word in words)


def _covers(rule: Rule, part: Part, inner: Sequence[Word], texts: set[str]) -> bool:
    if rule.content is None:
        return True
    if is_exact(rule.content):
        return literal(rule.content) in texts or _names(rule.content, part.source)
    if never_by_prefix(inner):
        return False
    if rule.content.startswith("*") and files_of(part).written:
        return False  # a rule that names no program meant none that removes or overwrites files
    return any(pattern_of(rule.content).fullmatch(text) for text in texts)


def never_by_prefix(words: Sequence[Word]) -> bool:
    """Whether what these words run is so open that no prefix could have meant it."""
    name = words[0].value.rsplit("/", 1)[-1]
    if name == "xargs":
        return len(words) < 2 or words[1].value.startswith("-") or words[1].value in NEVER_COVERED
    if name in NEVER_COVERED:
        return True
    if name == "find":
        return any(word.value in _FIND_ACTIONS for word in words)
    if name in ("fd", "fdfind"):
        return any(_FD_RUNS.match(word.value) for word in words)
    if name == "git":
        return any(_GIT_REDIRECTED.match(word.value) for word in _before_verb(words))
    return is_wrapper(words)


def _before_verb(words: Sequence[Word]) -> Iterator[Word]:
    """Flags of git itself. The value of one may look like the verb, so what comes behind it is one as well."""
    waits = False
    for word in words[1:]:
        if not word.value.startswith("-") and not waits:
            return
        waits = word.value in _GIT_TAKES_VALUE and not waits
        yield word


def _hides(word: Word) -> bool:
    """Whether the word may turn into others. A quoted home or working directory stays one word."""
    if word.traits & Trait.SUBSTITUTION:
        return True
    if not word.traits & Trait.EXPANSION:
        return False
    if not (word.raw.startswith('"') and word.raw.endswith('"')):
        return True
    rest = word.value
    for known in sorted(_SAFE_IN_ARGUMENTS, key=len, reverse=True):
        rest = rest.replace(known, "")
    return "$" in rest or "`" in rest
