"""The permission policy of one agent: every set of rights decides, the strictest word stands, a question is a no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from retinue.tools.base import (
    AnyTool,
    Behavior,
    CommandSubject,
    Decision,
    PathSubject,
    Subject,
    ToolContext,
    ToolInput,
)
from retinue.tools.permissions.decide import Case, Mode, asked_by, decide
from retinue.tools.permissions.denials import Denials
from retinue.tools.permissions.facts import Facts, facts_of, hidden_inside, resolved
from retinue.tools.permissions.rules import RuleBook, parse_rule
from retinue.tools.permissions.session import Session
from retinue.tools.permissions.words import denial_text, with_question
from retinue.tools.threads import in_thread

if TYPE_CHECKING:
    from retinue.tools.shell.analysis.case import Survey

DISK_S = 3.0
"""How long the disk may take to tell where the paths of a command lead."""

_NO_RIGHTS = Decision("deny", "this agent was given no rights", "no rights")
_SLOW_DISK = Decision("ask", f"where its paths lead could not be found out within {DISK_S:g} s", "slow disk", firm=True)


@dataclass(frozen=True, slots=True)
class Rights:
    """One set of rules with a mode. `whose` is named in a denial: the agent's own, or its parent's.

    plan  the one file that may be written in the mode plan
    """

    book: RuleBook
    mode: Mode = "default"
    whose: str = ""
    plan: Path | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person says to a question.

    reason  of a no: the agent is told it
    rules   what shall be allowed from now on, of what was suggested; only with a yes
    """

    allow: bool
    reason: str = ""
    rules: tuple[str, ...] = ()


class PersonPort(Protocol):
    """Somebody who can be asked while a call waits."""

    async def answer(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Answer:
        """`asked` says why it is asked, what may be lost, and what would make the question needless."""
        ...


class RequestPort(Protocol):
    """Who answers for a person before that person is asked (PermissionRequest hooks)."""

    async def request(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Decision | None:
        """None, or ask: no opinion. An allow is not heard where only a person may answer."""
        ...


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """Implements `PermissionPort`: a call is allowed when all rights allow it. Without a person, a question is a no.

    A hook that vouches for a call, or a classifier, answers instead of a person, but for what only a person may answer.
    `session` is what changed of the rights since the agent began.
    """

    rights: tuple[Rights, ...]
    denials: Denials = field(default_factory=Denials)
    person: PersonPort | None = None
    requests: RequestPort | None = None
    session: Session = field(default_factory=Session)

    @property
    def now(self) -> tuple[Rights, ...]:
        """The rights, with what changed of them meanwhile."""
        return self.session.applied(self.rights)

    def mode_now(self) -> Mode:
        """The mode that the agent works in."""
        return self.now[0].mode if self.rights else "default"

    def learn(self, behavior: Behavior, rule: str) -> None:
        """A rule for the rest of the session, from a person or from who answers for one. SpecError: it is none."""
        self.session.learn(parse_rule(rule, behavior, "session"))

    async def decide(
        self,
        tool: AnyTool,
        args: ToolInput,
        ctx: ToolContext,
        *,
        forced_ask: str | None,
        vouched: Decision | None = None,
        classifier: Awaitable[Decision | None] | None = None,
    ) -> Decision:
        subject = tool.subject(args, ctx)
        verdict = await self.judged(tool, args, ctx, subject, forced_ask)
        if verdict.behavior == "ask" and not verdict.firm:
            verdict = vouched or await _guessed(classifier) or verdict
        if verdict.behavior == "ask" and self.requests is not None:
            verdict = _heard(await self.requests.request(tool, args, ctx, verdict), verdict)
        if verdict.behavior == "ask" and self.person is not None:
            verdict = self._answered(await self.person.answer(tool, args, ctx, verdict), verdict)
        return self._told(tool, subject, verdict)

    async def judged(
        self, tool: AnyTool, args: ToolInput, ctx: ToolContext, subject: Subject, forced_ask: str | None
    ) -> Decision:
        """What the rights say, before anybody is asked."""
        if isinstance(subject, CommandSubject):
            says = await tool.check_permissions(args, ctx)
            verdict = await self._about_command(tool, subject, ctx, says, forced_ask)
        else:
            facts = await facts_of(tool, args, subject, ctx, forced_ask)
            verdict = await self._about_rest(tool, facts, ctx)
        return reduce(lambda a, b: a | b, self._on_parameters(tool, args), verdict)

    def _on_parameters(self, tool: AnyTool, args: ToolInput) -> Iterable[Decision]:
        for rights in self.now:
            rule = rights.book.by_parameter(tool, args)
            if rule is not None:
                yield _whose(rights, asked_by(rule, rights.mode))

    def _answered(self, answer: Answer, asked: Decision) -> Decision:
        """A rule is learnt only if it was offered: no answer makes a protected path or a critical removal a habit."""
        if not answer.allow:
            why = (
                f"the person who was asked said no: {answer.reason}"
                if answer.reason
                else "the person who was asked said no"
            )
            return Decision("deny", why, "person")
        offered = asked.question.suggestions if asked.question is not None and not asked.firm else ()
        for rule in answer.rules:
            if rule in offered:
                self.learn("allow", rule)
        return Decision("allow", "the person who was asked allowed it", "person")

    def may_read(self, tool: AnyTool, path: Path) -> bool:
        """Whether no rule keeps this file, by its name or by what its links lead to, from being read by the tool."""
        books = [each.book for each in self.now if each.book.hides_files(tool)]
        if not books:
            return True
        subject, found = PathSubject(path, write=False), resolved(path, reading=False)
        return not any(
            book.first("deny", tool, subject, found) or book.first("ask", tool, subject, found) for book in books
        )

    async def _about_rest(self, tool: AnyTool, facts: Facts, ctx: ToolContext) -> Decision:
        verdict = _strictest(word_of(each, tool, facts) for each in self.now)
        filtered = tool.filters_reads and ctx.may_read is not None
        if verdict.behavior == "allow" and facts.path is not None and facts.path.is_folder and not filtered:
            return await in_thread(self._look_inside, tool, facts.path.real, verdict)
        return with_question(tool, facts.subject, verdict, ctx.root)

    async def _about_command(
        self, tool: AnyTool, subject: CommandSubject, ctx: ToolContext, says: Decision | None, forced_ask: str | None
    ) -> Decision:
        """A disk that does not answer is left behind: it is only read, and what would be allowed is asked about."""
        # Not before an agent runs a command: the analysis would take a quarter of the time in which an agent starts.
        from retinue.tools.permissions.shell import CommandCase, decide_command
        from retinue.tools.shell.bash.confinement import is_confined
        from retinue.tools.shell.commands import in_place, without_disk

        def judge(survey: Survey) -> Decision:
            case = CommandCase(
                survey,
                ctx.sandbox,
                confined=is_confined(subject.text, ctx.sandbox, asks_out=subject.asks_out),
                asks_out=subject.asks_out and ctx.sandbox.state == "on",
                tool_says=says,
                forced_ask=forced_ask,
            )
            words = ((each, decide_command(case, tool, each.book, each.mode)) for each in self.now)
            return _strictest(_whose(each, word) for each, word in words)

        work = asyncio.ensure_future(asyncio.to_thread(lambda: judge(in_place(subject.text, ctx))))
        done, _ = await asyncio.wait((work,), timeout=DISK_S)
        if done:
            return work.result()
        work.add_done_callback(lambda late: late.cancelled() or late.exception())
        return _SLOW_DISK | judge(without_disk(subject.text, ctx))

    def _look_inside(self, tool: AnyTool, folder: Path, verdict: Decision) -> Decision:
        """What reads whole folders unfiltered: one that holds what may not be read is denied as a whole."""
        hidden = (hidden_inside(each.book, tool, folder) for each in self.now)
        return next((found for found in hidden if found is not None), verdict)

    def _told(self, tool: AnyTool, subject: Subject, verdict: Decision) -> Decision:
        """What the agent hears: nothing more of what is allowed, else why not, and what would help."""
        if verdict.behavior == "allow":
            self.denials.allowed()
            return verdict
        text = denial_text(tool, subject, verdict, [each.book for each in self.now])
        advice = self.denials.denied()
        return Decision("deny", f"{text} {advice}" if advice else text, verdict.source, verdict.question)


def intersect(parent: PermissionPolicy, child: PermissionPolicy) -> PermissionPolicy:
    """The child's policy: what its own rights allow, and its parent's allow too."""
    return replace(child, rights=(*child.rights, *parent.now))


def _strictest(words: Iterable[Decision]) -> Decision:
    """Of all sets of rights; without any, no."""
    found = list(words)
    return reduce(lambda a, b: a | b, found) if found else _NO_RIGHTS


def word_of(rights: Rights, tool: AnyTool, facts: Facts) -> Decision:
    """What one set of rights says of a call that is no command."""
    return _whose(rights, decide(case_of(rights, tool, facts)))


def case_of(rights: Rights, tool: AnyTool, facts: Facts) -> Case:
    """The call as one set of rights sees it."""
    book, subject, path = rights.book, facts.subject, facts.path
    return Case(
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
        is_plan=path is not None and path.real == rights.plan,
    )


def _heard(said: Decision | None, asked: Decision) -> Decision:
    """Of who answers for a person: a no always, a yes where it is not only for the person to say."""
    if said is None or said.behavior == "ask" or (said.behavior == "allow" and asked.firm):
        return asked
    return said


async def _guessed(classifier: Awaitable[Decision | None] | None) -> Decision | None:
    """What a classifier says instead of a person; a doubt of its own is none."""
    guess = await classifier if classifier is not None else None
    return guess if guess is not None and guess.behavior != "ask" else None


def _whose(rights: Rights, verdict: Decision) -> Decision:
    if not rights.whose or verdict.behavior == "allow":
        return verdict
    return replace(verdict, reason=f"{verdict.reason} (rights of {rights.whose})")
