"""The permission chain for one call that is no command. Pure: every fact is in the case, nothing is looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from retinue.tools.base import Decision
from retinue.tools.permissions.rules import Rule

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
MODES: tuple[Mode, ...] = get_args(Mode)


PLAN_FIRST = "in the mode plan nothing is changed but the plan: finish it, and have it approved with ExitPlanMode"


@dataclass(frozen=True, slots=True)
class Case:
    """All that the chain knows about one call.

    deny, ask, allow   the first rule of each kind that fits, over all sources
    tool_says          the tool's own check
    forced_ask         why business validation or a hook wants it asked
    touches            what kind of thing it acts on
    outside            the path lies outside of the workspace
    protected          the part of the path that protects it from changes
    is_plan            it is the file that the plan is written to
    """

    mode: Mode = "default"
    deny: Rule | None = None
    ask: Rule | None = None
    allow: Rule | None = None
    tool_says: Decision | None = None
    forced_ask: str | None = None
    read_only: bool = False
    touches: Literal["read", "write", "network", "other"] = "other"
    outside: bool = False
    protected: str | None = None
    is_plan: bool = False


def decide(case: Case) -> Decision:
    """deny > what always asks > plan > bypass > allow > the tool and the mode. dontAsk turns a question into a no."""
    decision = _refusal(case) or _firm(_always_asked(case)) or _planning(case) or _allowed(case) or _open_question(case)
    return if_nobody_is_asked(decision) if case.mode == "dontAsk" else decision


def if_nobody_is_asked(decision: Decision) -> Decision:
    """What becomes of a question in the mode dontAsk."""
    if decision.behavior != "ask":
        return decision
    return replace(decision, behavior="deny", reason=f"{decision.reason}, and the mode dontAsk asks nobody")


def _refusal(case: Case) -> Decision | None:
    if case.deny is not None:
        return by_rule(case.deny)
    if case.tool_says is not None and case.tool_says.behavior == "deny":
        return case.tool_says
    return None


def _always_asked(case: Case) -> Decision | None:
    """No mode and no allow rule answers these."""
    if case.ask is not None:
        return by_rule(case.ask)
    if case.forced_ask is not None:
        return Decision("ask", case.forced_ask, "validation")
    if case.protected is not None and case.touches == "write":
        return Decision(
            "ask", f"{case.protected} is protected, no rule and no mode approves a change", "protected path"
        )
    return None


def _firm(decision: Decision | None) -> Decision | None:
    return None if decision is None else replace(decision, firm=True)


def _planning(case: Case) -> Decision | None:
    """Who plans changes nothing but the plan. What only reads goes on by the rules."""
    if case.mode != "plan" or case.read_only:
        return None
    if case.is_plan:
        return Decision("allow", "it is the plan", "mode plan")
    if case.touches == "write":
        return Decision("deny", PLAN_FIRST, "mode plan")
    said = case.tool_says
    if said is not None and said.behavior == "allow":
        return said
    return Decision("ask", "in the mode plan only what reads needs no question", "mode plan")


def _allowed(case: Case) -> Decision | None:
    if case.mode == "bypassPermissions":
        return Decision("allow", "the mode bypassPermissions allows it", "mode bypassPermissions")
    if case.allow is None or (_leads_out(case) and case.allow.content is None):
        return None
    return by_rule(case.allow)


def _open_question(case: Case) -> Decision:
    """No rule spoke. Whatever leads out of the workspace is asked; so is what nobody vouches for."""
    said = case.tool_says
    if said is not None and said.behavior == "ask":
        return said
    if case.outside:
        return Decision("ask", "the path lies outside of the workspace", "workspace boundary")
    if said is not None:
        return said
    if case.touches == "network":
        return Decision("ask", "it leaves this machine, and no rule allows it", f"mode {case.mode}")
    if case.read_only and case.touches != "write":
        return Decision("allow", "it only reads", "read-only")
    if case.mode == "acceptEdits" and case.touches == "write":
        return Decision("allow", "the mode acceptEdits allows edits in the workspace", "mode acceptEdits")
    return Decision("ask", f"no rule allows it, and the mode {case.mode} does not", f"mode {case.mode}")


def _leads_out(case: Case) -> bool:
    """A rule for a whole tool does not reach over the boundary of the workspace, nor over the tool's own doubt."""
    return case.outside or (case.tool_says is not None and case.tool_says.behavior == "ask")


def by_rule(rule: Rule) -> Decision:
    """The decision of a rule, which it names with its source."""
    verb = {"deny": "denies", "ask": "wants to be asked about", "allow": "allows"}[rule.behavior]
    return Decision(rule.behavior, f"the {rule.source} rule {rule} {verb} it", f"{rule.source} rule {rule}")


def asked_by(rule: Rule, mode: Mode) -> Decision:
    """The same for a deny or ask rule that no other word can soften."""
    said = replace(by_rule(rule), firm=True)
    return if_nobody_is_asked(said) if mode == "dontAsk" else said
