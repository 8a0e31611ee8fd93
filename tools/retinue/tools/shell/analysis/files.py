"""Rules for files, held against the files that a command names. Pure but for the ports of the request."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.tools.permissions.rules import Rule
from retinue.tools.shell.analysis.case import Survey
from retinue.tools.shell.analysis.model import Place, Word
from retinue.tools.shell.analysis.paths import named_paths
from retinue.tools.shell.analysis.rules import FileRules


def first_for_files(survey: Survey, reads: FileRules, edits: FileRules) -> Rule | None:
    """The first rule that fits a file which the command names, as written or with its links followed.

    `reads` are held against what is read, `edits` against what is written. A file that nobody can name fits them all.
    """
    if not reads and not edits:
        return None
    for files, where in survey.files:
        looks = (
            (files.written, edits, _first),
            (files.swept, edits, _first_below),
            (files.read, reads, _first),
            (files.searched, reads, _first_below),
        )
        found = (look(rules, word, where) for words, rules, look in looks if rules for word in words)
        if (rule := next((rule for rule in found if rule is not None), None)) is not None:
            return rule
    return None


def _first(rules: FileRules, word: Word, where: Place) -> Rule | None:
    return _fitting(rules, named_paths(word, where), where)


def _first_below(rules: FileRules, word: Word, where: Place) -> Rule | None:
    found = (inner for path in named_paths(word, where) if path is not None for inner in where.below(path))
    for path in found:
        rule = rules[0][0] if path is None else next((rule for rule, fits in rules if fits(path, False)), None)
        if rule is not None:
            return rule
    return None


def _fitting(rules: FileRules, paths: Iterable[str | None], where: Place) -> Rule | None:
    for path in paths:
        if path is None:
            return rules[0][0]
        real = where.real(path)
        for rule, fits in rules:
            if fits(path, True) or (real != path and fits(real, True)):
                return rule
    return None
