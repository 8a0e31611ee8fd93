"""What rules and modes say of code, which could do by itself what they keep a tool from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retinue.tools.base import AnyTool, NameSubject
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.rules import Rule
from retinue.tools.registry.filters import names_tool


@dataclass(frozen=True, slots=True)
class CodeRights:
    """
    vouched    every set of rights has a rule that allows the tool that runs the code
    restraint  a rule that code could get round, in words; empty when there is none
    planning   something may be looked at, and nothing changed
    """

    vouched: bool = False
    restraint: str = ""
    planning: bool = False


def code_rights(
    policy: PermissionPolicy, runs: AnyTool, stands_for: Iterable[AnyTool], *, has_shell: bool
) -> CodeRights:
    """As it is now.

    runs        the tool that runs the code
    stands_for  all tools whose work code can do by itself, whether or not this agent has them
    has_shell   who has no shell shall not get its powers by another way
    """
    rights = policy.now
    alone = "" if has_shell else "code could do what this agent has no shell for"
    return CodeRights(
        vouched=all(_vouches(each, runs) for each in rights),
        restraint=_restraint(rights, tuple(stands_for)) or alone,
        planning=any(each.mode == "plan" for each in rights),
    )


def _vouches(rights: Rights, runs: AnyTool) -> bool:
    return rights.book.first("allow", runs, NameSubject(), None) is not None


def _restraint(all_rights: tuple[Rights, ...], tools: tuple[AnyTool, ...]) -> str:
    for rights in all_rights:
        for rule in (*rights.book.of_behavior("deny"), *rights.book.of_behavior("ask")):
            if _restrains(rule, tools):
                return f"code could do what the {rule.source} rule {rule} {_verb(rule)}"
    return ""


def _restrains(rule: Rule, tools: tuple[AnyTool, ...]) -> bool:
    """Rules for files speak of Read and Edit, whichever tools there are."""
    return rule.tool in ("Read", "Edit") or any(names_tool(rule.tool, tool) for tool in tools)


def _verb(rule: Rule) -> str:
    return "forbids" if rule.behavior == "deny" else "wants to be asked about"
