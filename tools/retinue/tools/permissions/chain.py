"""The permission policy of one agent: every set of rights decides, the strictest word stands, a question is a no."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from retinue.tools.base import AnyTool, Decision, ToolContext, ToolInput
from retinue.tools.permissions.decide import Case, Mode, decide
from retinue.tools.permissions.denials import Denials
from retinue.tools.permissions.facts import Facts, facts_of, hidden_inside
from retinue.tools.permissions.rules import RuleBook
from retinue.tools.permissions.words import denial_text
from retinue.tools.threads import in_thread

_NO_RIGHTS = Decision("deny", "this agent was given no rights", "no rights")


@dataclass(frozen=True, slots=True)
class Rights:
    """One set of rules with a mode. `whose` is named in a denial: the agent's own, or its parent's."""

    book: RuleBook
    mode: Mode = "default"
    whose: str = ""


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Implements `PermissionPort`: a call is allowed when all rights allow it. Nobody is there to be asked."""

    rights: tuple[Rights, ...]
    denials: Denials = field(default_factory=Denials)

    async def decide(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, *, forced_ask: str | None) -> Decision:
        facts = await facts_of(tool, args, ctx, forced_ask)
        verdict = self.judge(tool, facts)
        if verdict.behavior == "allow" and facts.path is not None and facts.path.is_folder:
            verdict = await in_thread(self._look_inside, tool, facts.path.real, verdict)
        if verdict.behavior == "allow":
            self.denials.allowed()
            return verdict
        books = [each.book for each in self.rights]
        text = denial_text(tool, facts, verdict, books, ctx.root)
        advice = self.denials.denied()
        return Decision("deny", f"{text} {advice}" if advice else text, verdict.source)

    def judge(self, tool: AnyTool, facts: Facts) -> Decision:
        """The strictest word of all sets of rights; without any, no."""
        words = [_word(each, tool, facts) for each in self.rights]
        return reduce(lambda a, b: a | b, words, words[0]) if words else _NO_RIGHTS

    def _look_inside(self, tool: AnyTool, folder: Path, verdict: Decision) -> Decision:
        """A search reads whole folders: one that holds what may not be read is denied as a whole."""
        hidden = (hidden_inside(each.book, tool, folder) for each in self.rights)
        return next((found for found in hidden if found is not None), verdict)


def intersect(parent: PermissionPolicy, child: PermissionPolicy) -> PermissionPolicy:
    """The child's policy: what its own rights allow, and its parent's allow too."""
    return PermissionPolicy((*child.rights, *parent.rights), child.denials)


def _word(rights: Rights, tool: AnyTool, facts: Facts) -> Decision:
    book, subject, path = rights.book, facts.subject, facts.path
    verdict = decide(
        Case(
            mode=rights.mode,
            deny=book.first("deny", tool, subject, path),
            ask=book.first("ask", tool, subject, path),
            allow=book.first("allow", tool, subject, path),
            tool_says=facts.tool_says,
            forced_ask=facts.forced_ask,
            read_only=facts.read_only,
            touches=facts.touches,
            outside=facts.outside,
            protected=facts.protected,
        )
    )
    if not rights.whose or verdict.behavior == "allow":
        return verdict
    return Decision(verdict.behavior, f"{verdict.reason} (rights of {rights.whose})", verdict.source)
