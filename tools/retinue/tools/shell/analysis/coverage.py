"""Which commands need no question although they do more than read: what allow rules cover, and what only edits files.

Pure but for the ports of the request.
"""

from __future__ import annotations

from retinue.tools.permissions.commands import literal
from retinue.tools.permissions.rules import Rule
from retinue.tools.shell.analysis import sedscript
from retinue.tools.shell.analysis.bars import bar
from retinue.tools.shell.analysis.case import Survey
from retinue.tools.shell.analysis.checks import BREAKS, OPAQUE
from retinue.tools.shell.analysis.effects import files_of
from retinue.tools.shell.analysis.environment import is_safe
from retinue.tools.shell.analysis.inner import is_unnamed, is_unread
from retinue.tools.shell.analysis.model import Part, Place, Trait, Word
from retinue.tools.shell.analysis.paths import candidates, outside
from retinue.tools.shell.analysis.readonly import is_free, may_become_flag
from retinue.tools.shell.analysis.rules import ShellRules, covering
from retinue.tools.shell.analysis.table import Entry, NotListed, Scanned, edit_table, scan

_READING = ("<", "<<", "<<-", "<<<", "<&")
_KNOWN_ONLY_LATER = Trait.EXPANSION | Trait.SUBSTITUTION | Trait.ANSI | Trait.BRACE | Trait.EQUALS


def covered(survey: Survey, rules: ShellRules, *, every_part: bool = False) -> Rule | None:
    """The rule that covers the command, if rules and the table cover all of it; with `every_part`, rules alone."""
    if not rules.allow or survey.reading.status == "broken" or survey.checks & BREAKS:
        return None
    if bar(survey) is not None or not _writes_are_free(survey):
        return None
    whole = rules.allows_all
    if whole is not None:
        return whole if all_seen(survey, rules) else None
    text = survey.request.command.strip()
    exact = next((rule for rule in rules.allow if literal(rule.content or "") == text), None)
    if exact is not None:
        return exact
    return _each_covered(survey, rules, every_part=every_part) if survey.is_simple else None


def all_seen(survey: Survey, rules: ShellRules) -> bool:
    """Whether none of its commands could be one that no rule covers or that a rule forbids, without being seen."""
    if any(is_unnamed(words) for words, _ in survey.commands):
        return False
    return not rules.restricts_some or not any(is_unread(words) for words, _ in survey.commands)


def _each_covered(survey: Survey, rules: ShellRules, *, every_part: bool) -> Rule | None:
    if survey.checks & OPAQUE or any(why is not None for _, why in survey.spots):
        return None  # what the parts are, or where they run, is not known, or not theirs to choose
    needs = (
        zip(survey.reading.parts, survey.spots, strict=True)
        if every_part
        else ((n.part, (n.where, None)) for n in survey.needs)
    )
    last: Rule | None = None
    for part, (where, _) in needs:
        rule = covering(rules, part)
        if rule is None or not stays_inside(part, where):
            return None
        last = rule
    return last


def stays_inside(part: Part, where: Place) -> bool:
    """Whether the files that the command names lie in allowed directories, and its output goes nowhere else."""
    if not all(is_free(redirect) or redirect.operator in _READING for redirect in part.raw.redirects):
        return False
    files = files_of(part)
    return all(outside(word, where) is None for word in (*files.read, *files.written))


def _writes_are_free(survey: Survey) -> bool:
    """Whether all that the command names to write can be named, and lies inside."""
    return uncovered_place(survey) is None


def uncovered_place(survey: Survey) -> str | None:
    """What the command names to write and no rule for commands covers, in words."""
    for part, (where, _) in zip(survey.reading.parts, survey.spots, strict=True):
        for word in files_of(part).written:
            for path in candidates(word, where):
                if path is None and (word.traits & Trait.GLOB or part.raw.redirects):
                    return f"where {word.raw} leads is not known"
                if path is not None and not where.inside(path):
                    return f"it writes {word.raw}, which lies outside of the workspace"
    return None


def only_edits(survey: Survey) -> bool:
    """Whether it only makes, changes, moves and removes files inside: what a mode that accepts edits accepts."""
    if not survey.is_simple or survey.hits or not survey.needs or bar(survey) is not None:
        return False
    if any(why is not None for _, why in survey.spots):
        return False
    return all(_is_edit(need.part, need.where) for need in survey.needs)


def _is_edit(part: Part, where: Place) -> bool:
    words = part.inner
    if not words or not words[0].literal or not all(map(is_safe, part.assignments)):
        return False
    if any(word.traits & _KNOWN_ONLY_LATER for word in part.words) or not stays_inside(part, where):
        return False
    entry = edit_table().get(words[0].value)
    if entry is None or may_become_flag(entry, words[1:]) is not None:
        return False
    try:
        scanned = scan(entry, words[1:])
    except NotListed:
        return False
    paths = scanned.arguments if entry.args == "paths" else _edited(entry, scanned)
    if entry.name == "cp" and any(word.value.endswith(("/.", "/..")) or word.value == "." for word in paths[:-1]):
        return False  # what lands is all that lies there, whatever it is called
    return bool(paths) and all(outside(word, where) is None for word in (*paths, *scanned.files))


def _edited(entry: Entry, scanned: Scanned) -> list[Word]:
    """The files that sed edits; none when its script, or the name of its backup, is not of a known form."""
    scripts = [value for name, value in scanned.values if name in entry.first]
    suffixes = [value for name, value in scanned.values if name not in entry.first]
    paths = scanned.arguments
    if not scripts and paths:
        scripts, paths = [paths[0].value], paths[1:]
    known = all(map(sedscript.is_harmless, scripts)) and not any(c in suffix for suffix in suffixes for c in "/*")
    return paths if scripts and known else []
