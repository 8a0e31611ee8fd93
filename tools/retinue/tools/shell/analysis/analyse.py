"""The analysis of a shell command: from its text, the shell, the directories and the rules to a verdict with reasons.

Pure, and never raises. A command is read-only when the tree proves each of its parts so and no named check objects;
everything else is asked about, unless rules cover every part. What rules forbid is looked for even in a text that
nobody can read; a critical removal is never covered by a rule.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from retinue.tools.permissions.commands import literal, runs_uncovered
from retinue.tools.permissions.protected import protected_part
from retinue.tools.permissions.rules import PathFits, Rule
from retinue.tools.shell.analysis.checks import BREAKS, OPAQUE, run_checks
from retinue.tools.shell.analysis.effects import files_of
from retinue.tools.shell.analysis.model import (
    MAX_PARTS,
    Need,
    Outcome,
    Part,
    Place,
    Reason,
    Request,
    Trait,
    Verdict,
    Word,
)
from retinue.tools.shell.analysis.movement import is_move, places
from retinue.tools.shell.analysis.paths import candidates, outside, place
from retinue.tools.shell.analysis.reading import Reading, all_commands, commands_of, read
from retinue.tools.shell.analysis.readonly import is_free, why_not
from retinue.tools.shell.analysis.removal import critical, may_hold_removal, may_remove
from retinue.tools.shell.analysis.rules import ShellRules, compile_rules, covering, first_fitting, names_its_programs
from retinue.tools.shell.analysis.table import Table, builtin_table
from retinue.tools.shell.analysis.wrappers import inner_starts


class _Case(NamedTuple):
    """All that is known of one command before it is judged."""

    request: Request
    rules: ShellRules
    reading: Reading
    hits: tuple[Reason, ...]
    spots: Sequence[tuple[Place, str | None]]
    """Where each part runs, and what keeps it from running there unasked; only for a simple text."""
    needs: tuple[Need, ...]
    """The parts that the table does not vouch for, and why."""

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(hit.check for hit in self.hits)


def analyse(request: Request, table: Table | None = None) -> Verdict:
    """The verdict on one command."""
    reading = read(request.command)
    hits = tuple(run_checks(request.command, reading.parts))
    start = place(request)
    simple = reading.status == "simple"
    spots = places(reading.parts, start) if simple else [(start, None)] * len(reading.parts)
    needs = _needs(request, reading, spots, table or builtin_table()) if simple else ()
    rules = compile_rules(request.rules, request.cwd, request.home)
    case = _Case(request, rules, reading, hits, spots, needs)
    if simple and not hits and not needs and rules.is_empty:
        return _verdict(case, "read-only")
    return _judged(case)


def _needs(
    request: Request, reading: Reading, spots: Sequence[tuple[Place, str | None]], table: Table
) -> tuple[Need, ...]:
    needs: list[Need] = []
    before = ""
    for part, (where, why) in zip(reading.parts, spots, strict=True):
        if why is None and not (is_move(part) and not part.assignments and not part.raw.redirects):
            why = why_not(part, where, table, request.shell, before if part.raw.connector == "|" else "")
        before = part.program
        if why is not None:
            needs.append(Need(part, where, why))
    return tuple(needs)


def _judged(case: _Case) -> Verdict:
    """Deny, then what no rule covers, then ask, then what needs no question."""
    deep = _is_looked_through(case)
    commands = list(all_commands(case.request.command, case.reading)) if deep else []
    denied = first_fitting(case.rules.deny, commands) or _denied_file(case)
    if denied is not None:
        return _verdict(case, "deny", rule=denied, why=Reason("rule", 0, f"denied by {denied}"))
    removed = _critical(case, commands) if deep else None
    if removed is not None:
        return _verdict(case, "hard-stop", why=Reason("removal", 0, f"removal of {removed}"))
    asked = first_fitting(case.rules.ask, commands)
    if asked is not None:
        return _verdict(case, "ask", rule=asked, why=Reason("rule", 0, f"asked for by {asked}"))
    if case.reading.status == "simple" and not case.hits and not case.needs:
        return _verdict(case, "read-only")
    covered = _covered(case)
    return _verdict(case, "ask") if covered is None else _verdict(case, "allow", rule=covered)


def _is_looked_through(case: _Case) -> bool:
    """Whether any rule or removal could be found in the command at all."""
    rules = case.rules
    if rules.deny or rules.ask or case.reading.status == "broken":
        return True
    if not may_hold_removal(case.request.command):
        return False
    return any(may_remove(word) for part in case.reading.parts for word in part.words)


def _critical(case: _Case, commands: Sequence[Sequence[Word]]) -> str | None:
    """A removal that no rule may cover, in any command, wherever a `cd` before it may have led."""
    cwd, home = posixpath.normpath(case.request.cwd), posixpath.normpath(case.request.home)
    if case.reading.status == "simple":
        spots = zip(case.reading.parts, case.spots, strict=True)
        placed = [(words, where.bases) for part, (where, _) in spots for words in commands_of(part)]
    else:
        anywhere = _anywhere(case, commands)
        placed = [(words, anywhere) for words in commands]
    for words, bases in placed:
        for tail in inner_starts(words):
            found = critical(tail, bases, cwd, home)
            if found is not None:
                return found
    return None


def _anywhere(case: _Case, commands: Sequence[Sequence[Word]]) -> tuple[str, ...]:
    """The working directory, and each place that some `cd` of the text names."""
    start = place(case.request)
    targets = [
        path
        for words in commands
        if words[0].value == "cd"
        for word in words[1:]
        for path in candidates(word, start)
        if path is not None
    ]
    return tuple(dict.fromkeys((*start.bases, *targets[:MAX_PARTS])))


def _denied_file(case: _Case) -> Rule | None:
    """A deny rule for files that fits one which the command names, as written or with its links followed."""
    rules = case.rules
    if not rules.deny_read and not rules.deny_edit:
        return None
    for part, (where, _) in zip(case.reading.parts, case.spots, strict=True):
        files = files_of(part)
        for word in (*files.read, *files.written):
            written = word in files.written
            for rule, fits in (*rules.deny_read, *(rules.deny_edit if written else ())):
                if any(path is None or _fits(fits, path, where) for path in candidates(word, where)):
                    return rule
    return None


def _fits(fits: PathFits, path: str, where: Place) -> bool:
    return fits(path, True) or fits(where.real(path), True)


def _covered(case: _Case) -> Rule | None:
    """The rule that covers the command, if rules and the table cover all of it."""
    rules, reading = case.rules, case.reading
    if not rules.allow or reading.status == "broken" or case.numbers & BREAKS:
        return None
    if runs_uncovered(case.request.command) is not None or not _writes_are_free(case):
        return None
    whole = rules.allows_all
    if whole is not None:
        hidden = rules.restricts_some and not names_its_programs(reading.parts)
        return None if hidden else whole
    exact = next((rule for rule in rules.allow if literal(rule.content or "") == case.request.command.strip()), None)
    if exact is not None:
        return exact
    if reading.status != "simple" or case.numbers & OPAQUE:
        return None
    return _each_covered(case)


def _each_covered(case: _Case) -> Rule | None:
    if any(why is not None for _, why in case.spots):
        return None  # where the parts run is not known, or not theirs to choose
    last: Rule | None = None
    for part, where, _ in case.needs:
        rule = covering(case.rules, part)
        if rule is None or not _stays_inside(part, where):
            return None
        last = rule
    return last


def _stays_inside(part: Part, where: Place) -> bool:
    """Whether the files that the command names lie in allowed directories, and its output goes nowhere else."""
    if not all(
        is_free(redirect) or redirect.operator in ("<", "<<", "<<-", "<<<", "<&") for redirect in part.raw.redirects
    ):
        return False
    files = files_of(part)
    return all(outside(word, where) is None for word in (*files.read, *files.written))


def _writes_are_free(case: _Case) -> bool:
    """Whether nothing that the command names to write is protected, or outside."""
    for part, (where, _) in zip(case.reading.parts, case.spots, strict=True):
        for word in files_of(part).written:
            for path in candidates(word, where):
                if path is None:
                    if word.traits & Trait.GLOB or part.raw.redirects:
                        return False
                    continue
                if not where.inside(path) or _protected(path, where):
                    return False
    return True


def _protected(path: str, where: Place) -> bool:
    root = where.roots[0]
    relative = posixpath.relpath(path, root) if where.inside(path) else path
    return protected_part(PurePosixPath(relative)) is not None


def _verdict(case: _Case, outcome: Outcome, *, rule: Rule | None = None, why: Reason | None = None) -> Verdict:
    reading = case.reading
    causes = reading.reasons + case.hits if why is None else (why, *reading.reasons, *case.hits)
    return Verdict(
        command=case.request.command,
        outcome=outcome,
        status=reading.status,
        causes=causes,
        parts=reading.parts,
        needs=case.needs,
        rule=None if rule is None else str(rule),
    )
