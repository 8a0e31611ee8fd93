"""Implements `WaitPort`, and lets people be asked: an agent that waits shows it, and wakes when something comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from retinue.agents.mail.mailbox import Mailbox
from retinue.agents.standing import Standing
from retinue.tools.people.ports import HumanAnswers, HumanPort, HumanQuestion, PlanVerdict
from retinue.tools.system.ports import WokenBy

Sleep = Callable[[float], Awaitable[None]]


class Waiting:
    """`mail` and `end` are called by the agent's loop."""

    def __init__(self, mailbox: Mailbox, standing: Standing, sleep: Sleep) -> None:
        self._mailbox = mailbox
        self._standing = standing
        self._sleep = sleep
        self._news = asyncio.Event()
        self._ending = False

    def mail(self) -> None:
        """Mail has come."""
        self._news.set()

    def end(self) -> None:
        """The agent shall end with its step."""
        self._ending = True
        self._news.set()

    async def rest(self, seconds: float) -> WokenBy:
        self._news.clear()
        if self._ending or self._mailbox.unread:
            return self._by()
        time, news = asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(self._news.wait())
        self._standing.sleeps(seconds)
        try:
            await asyncio.wait({time, news}, return_when=asyncio.FIRST_COMPLETED)
            return self._by() if news.done() else "time"
        finally:
            time.cancel()
            news.cancel()
            self._standing.wakes()

    def _by(self) -> WokenBy:
        return "end" if self._ending else "mail"


class Asked:
    """Implements `HumanPort` over another: the agent shows that it waits, and how long it does is a setting."""

    def __init__(self, human: HumanPort, standing: Standing, answer_s: Callable[[], float | None]) -> None:
        self._human = human
        self._standing = standing
        self._answer_s = answer_s

    async def ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers | None:
        self._standing.report("waiting", "for an answer of the user")
        try:
            async with asyncio.timeout(self._answer_s()):
                return await self._human.ask(questions)
        except TimeoutError:
            return None
        finally:
            self._standing.report("working")

    async def approve(self, plan: str) -> PlanVerdict:
        self._standing.report("waiting", "for a word about its plan")
        try:
            return await self._human.approve(plan)
        finally:
            self._standing.report("working")
