"""What a person is told together with a verdict, and how a command is folded when it is shown. Pure."""

from __future__ import annotations

from retinue.tools.shell.analysis import display, warnings
from retinue.tools.shell.analysis.checks import OPAQUE
from retinue.tools.shell.analysis.model import DisplayClass, Verdict
from retinue.tools.shell.analysis.suggest import suggestions


def suggested_rules(verdict: Verdict) -> tuple[str, ...] | None:
    """Rules that would make the question needless; empty when there is none to ask, None when no rule could."""
    if verdict.outcome in ("read-only", "allow"):
        return ()
    if verdict.outcome != "ask" or verdict.status != "simple" or verdict.checks & OPAQUE:
        return None
    return suggestions([need.part for need in verdict.needs])


def display_class(verdict: Verdict) -> DisplayClass | None:
    """Search, read or list when all that the command does is of that kind."""
    return display.display_class(verdict.parts) if verdict.status == "simple" else None


def warnings_of(verdict: Verdict) -> tuple[str, ...]:
    """What may be lost. Nothing can be by what only reads."""
    return () if verdict.outcome == "read-only" else warnings.warnings_for(verdict.command)
