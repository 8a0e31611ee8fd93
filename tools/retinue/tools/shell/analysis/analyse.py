"""The analysis of a shell command: from its text, the shell, the directories and the rules to a verdict with reasons.

Pure, and never raises. A command is read-only when the tree proves each of its parts so and no named check objects;
everything else is asked about, unless rules cover every part. What rules forbid is looked for even in a text that
nobody can read; a critical removal is never covered by a rule.
"""

from __future__ import annotations

from retinue.tools.permissions.rules import Rule
from retinue.tools.shell.analysis.bars import critical_removal
from retinue.tools.shell.analysis.case import Survey, survey
from retinue.tools.shell.analysis.coverage import covered
from retinue.tools.shell.analysis.files import first_for_files
from retinue.tools.shell.analysis.model import Outcome, Reason, Request, Verdict
from retinue.tools.shell.analysis.rules import NO_SHELL_RULES, ShellRules, compile_rules, first_fitting
from retinue.tools.shell.analysis.table import Table


def analyse(request: Request, table: Table | None = None) -> Verdict:
    """The verdict on one command."""
    return judge(survey(request, table), compile_rules(request.rules, request.cwd, request.home))


def judge(case: Survey, rules: ShellRules = NO_SHELL_RULES) -> Verdict:
    """Deny, then what no rule covers, then ask, then what needs no question."""
    if case.only_reads and rules.forbids_nothing:
        return _verdict(case, "read-only")
    denied = _fitting(case, rules.deny) or first_for_files(case, rules.deny_read, rules.deny_edit)
    if denied is not None:
        return _verdict(case, "deny", rule=denied, why=Reason("rule", 0, f"denied by {denied}"))
    removed = critical_removal(case)
    if removed is not None:
        return _verdict(case, "hard-stop", why=removed)
    if rules is NO_SHELL_RULES:
        return _verdict(case, "ask")
    asked = _fitting(case, rules.ask) or first_for_files(case, rules.ask_read, rules.ask_edit)
    if asked is not None:
        return _verdict(case, "ask", rule=asked, why=Reason("rule", 0, f"asked for by {asked}"))
    if case.only_reads:
        return _verdict(case, "read-only")
    rule = covered(case, rules)
    return _verdict(case, "ask") if rule is None else _verdict(case, "allow", rule=rule)


def _fitting(case: Survey, rules: tuple[Rule, ...]) -> Rule | None:
    return first_fitting(rules, (words for words, _ in case.commands)) if rules else None


def _verdict(case: Survey, outcome: Outcome, *, rule: Rule | None = None, why: Reason | None = None) -> Verdict:
    reading = case.reading
    causes = reading.reasons + case.hits
    return Verdict(
        command=case.request.command,
        outcome=outcome,
        status=reading.status,
        causes=causes if why is None else (why, *causes),
        parts=reading.parts,
        needs=case.needs,
        decided_by=rule,
    )
