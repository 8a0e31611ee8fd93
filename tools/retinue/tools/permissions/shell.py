"""The permission chain for one command: what the analysis says of it, the rules and mode of one set of rights.

Pure: the survey holds all that was looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from retinue.tools.base import AnyTool, Decision, Question
from retinue.tools.permissions.decide import Mode, by_rule, if_nobody_is_asked
from retinue.tools.permissions.rules import RuleBook
from retinue.tools.registry.filters import names_tool
from retinue.tools.shell.analysis.advice import suggested_rules, warnings_of
from retinue.tools.shell.analysis.analyse import judge
from retinue.tools.shell.analysis.bars import bar
from retinue.tools.shell.analysis.case import Survey
from retinue.tools.shell.analysis.coverage import all_seen, covered, only_edits, uncovered_place
from retinue.tools.shell.analysis.model import Verdict
from retinue.tools.shell.analysis.rules import ShellRules, shell_rules
from retinue.tools.shell.sandbox.policy import SandboxUse

_SHOWN_REASONS = 3
_LEAVES = (
    "it wants to run outside of the sandbox (dangerouslyDisableSandbox), where even what only reads needs an allow "
    "rule or a person's word, and no rule covers every part of it"
)
_BARS = {"protected": "protected path", "uncovered": "uncovered command", "limit": "limit"}


@dataclass(frozen=True, slots=True)
class CommandCase:
    """One command, the same for every set of rights.

    confined   it would run in the sandbox
    asks_out   it wants to run outside of the sandbox, and may
    """

    survey: Survey
    sandbox: SandboxUse
    confined: bool = False
    asks_out: bool = False
    tool_says: Decision | None = None
    forced_ask: str | None = None


def decide_command(case: CommandCase, tool: AnyTool, book: RuleBook, mode: Mode) -> Decision:
    """deny > what always asks > what needs no question. dontAsk turns every question into a denial."""
    rules = rules_of(book, tool)
    verdict = judge(case.survey, rules)
    decision = (
        _refusal(case, verdict)
        or _always_asked(case, rules, verdict)
        or _allowed(case, rules, verdict, mode)
        or _open_question(case, verdict, mode)
    )
    return if_nobody_is_asked(decision) if mode == "dontAsk" else decision


@lru_cache(maxsize=64)
def rules_of(book: RuleBook, tool: AnyTool) -> ShellRules:
    """The rules of a book for a shell tool, and those for files."""
    return shell_rules(book.rules, book.anchors, lambda rule: names_tool(rule.tool, tool))


def _refusal(case: CommandCase, verdict: Verdict) -> Decision | None:
    if verdict.outcome == "deny" and verdict.decided_by is not None:
        return by_rule(verdict.decided_by)
    said = case.tool_says
    return said if said is not None and said.behavior == "deny" else None


def _always_asked(case: CommandCase, rules: ShellRules, verdict: Verdict) -> Decision | None:
    """No mode answers these, and no allow rule but the one for leaving the sandbox."""
    if verdict.outcome == "hard-stop":
        return _asked(verdict, f"{verdict.causes[0].text} needs a person's word", "critical removal")
    if verdict.outcome == "ask" and verdict.decided_by is not None:
        said = by_rule(verdict.decided_by)
        return _asked(verdict, said.reason, said.source)
    if case.forced_ask is not None:
        return _asked(verdict, case.forced_ask, "validation")
    barred = None if verdict.outcome == "read-only" else bar(case.survey)
    if barred is not None:
        return _asked(verdict, barred.text, _BARS[barred.kind])
    return _about_sandbox(case, rules, verdict)


def _about_sandbox(case: CommandCase, rules: ShellRules, verdict: Verdict) -> Decision | None:
    if case.sandbox.state == "broken":
        why = f"the sandbox cannot start ({case.sandbox.why})" if case.sandbox.why else "the sandbox cannot start"
        remedy = "`retinue doctor` says what is missing; `sandbox.enabled: false` in the spec does without one"
        return _asked(verdict, f"{why}, so every command is asked about: {remedy}", "sandbox")
    if case.asks_out and covered(case.survey, rules, every_part=True) is None:
        return _asked(verdict, _LEAVES, "sandbox")
    return None


def _allowed(case: CommandCase, rules: ShellRules, verdict: Verdict, mode: Mode) -> Decision | None:
    if verdict.outcome == "read-only":
        return Decision("allow", "it only reads", "read-only")
    if mode == "plan":
        return None
    if verdict.outcome == "allow" and verdict.decided_by is not None:
        return by_rule(verdict.decided_by)
    if mode == "bypassPermissions":
        return Decision("allow", "the mode bypassPermissions allows it", "mode bypassPermissions")
    if case.sandbox.auto_allow and case.confined and _all_seen(case.survey, rules):
        return Decision("allow", "the sandbox confines it", "sandbox")
    if mode == "acceptEdits" and only_edits(case.survey):
        return Decision("allow", "the mode acceptEdits allows edits in the workspace", "mode acceptEdits")
    return None


def _all_seen(survey: Survey, rules: ShellRules) -> bool:
    """Whether no command that a rule forbids could be among those that cannot be named."""
    if not rules.restricts_some:
        return True
    return survey.reading.status != "broken" and all_seen(survey, rules)


def _open_question(case: CommandCase, verdict: Verdict, mode: Mode) -> Decision:
    if case.tool_says is not None:
        return case.tool_says
    reasons = [reason.text for reason in verdict.reasons]
    more = f" and {len(reasons) - _SHOWN_REASONS} more" if len(reasons) > _SHOWN_REASONS else ""
    why = f" ({'; '.join(reasons[:_SHOWN_REASONS])}{more})" if reasons else ""
    kept = uncovered_place(case.survey)
    if kept is not None:
        why = f": {kept}, and no rule for commands covers that"
    text = f"no rule allows it, and the mode {mode} does not{why}"
    suggestions = () if mode == "plan" or kept is not None else suggested_rules(verdict) or ()
    return _asked(verdict, text, f"mode {mode}", suggestions, firm=False)


def _asked(
    verdict: Verdict, reason: str, source: str, suggestions: tuple[str, ...] = (), *, firm: bool = True
) -> Decision:
    checks = tuple(sorted(verdict.checks))
    question = Question(source=source, suggestions=suggestions, warnings=warnings_of(verdict), checks=checks)
    return Decision("ask", reason, source, question, firm)
