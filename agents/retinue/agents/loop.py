"""An agent at work: waits for mail, runs turns, and can be drained, interrupted and stopped at any time.

What happens next is read off the conversation alone, so going on after a crash is going on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.background.keeping import Background
from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.hooks.none import NoHooks
from retinue.agents.journal import Journal
from retinue.agents.mail.envelopes import Envelope, Receipt
from retinue.agents.mail.mailbox import Taken
from retinue.agents.mail.render import Rendered, Spill, render
from retinue.agents.model.messages import TextBlock
from retinue.agents.model.port import ModelPort
from retinue.agents.ports import BudgetPort, CheckpointPort, LedgerPort, Reservation, StatusPort
from retinue.agents.records import MessageWithdrawn, PromptRefused, RequestSent, TurnClosed
from retinue.agents.recovery import AskAgain, Complete, recovery
from retinue.agents.standing import Standing
from retinue.agents.steps import Steps, Timing, Toolbox
from retinue.agents.tokens import estimate_tokens
from retinue.agents.turn import Ask, End, after_message, over_limit
from retinue.tools.errors import EnvironmentProblem, RetinueError
from retinue.tools.threads import in_thread

BUDGET_AGAIN_S = 5.0
MAIL_TOKENS = 20_000
"""Of mail in one step; what does not fit comes with later steps."""

_FAILED = frozenset({"model_error", "expectation", "limit", "hook"})


@dataclass(frozen=True, slots=True)
class AgentPorts:
    """What an agent's loop asks of its surroundings."""

    model: ModelPort
    ledger: LedgerPort
    budget: BudgetPort
    status: StatusPort
    checkpoint: CheckpointPort


class AgentLoop:
    """One incarnation of one agent. `run` once; the other methods may be called from anywhere on its event loop."""

    def __init__(
        self,
        boot: AgentBoot,
        ports: AgentPorts,
        journal: Journal,
        standing: Standing,
        tools: Toolbox,
        timing: Timing,
        background: Background,
        watch: Callable[[str], None] | None = None,
        hooks: NoHooks | None = None,
    ) -> None:
        self._boot = boot
        self._hooks = hooks or NoHooks()
        self._ports = ports
        self._journal = journal
        self._conversation = journal.conversation
        self._standing = standing
        self._tools = tools
        self._timing = timing
        self._background = background
        background.on_mail = self._has_mail
        self._steps = Steps(boot, journal, ports.model, tools, ports.checkpoint, standing, timing, self._pause, watch)
        self._prefix_tokens = estimate_tokens(tools.system) + sum(
            estimate_tokens(f"{spec.description}{spec.input_schema}") for spec in tools.belt.specs()
        )
        self._wake = asyncio.Event()
        self._drain = asyncio.Event()
        self._over = asyncio.Event()
        self._settled = asyncio.Event()
        self._begun_at = timing.clock()
        self._recovered = False
        self._hailed = False
        self._held = False
        self._running = False
        self._work: asyncio.Task[None] | None = None
        self._interrupted: str | None = None
        self._stopping = False

    # --- from outside ---

    async def run(self) -> TurnClosed | None:
        """Until drained, stopped, or ended by a shutdown request; a sub-agent until its first turn is closed.

        Returns how the last turn ended, None when drained. Cancelled, it leaves what a crash leaves, but no process.
        """
        self._running = True
        self._standing.report("starting")
        try:
            await self._background.recover()
            while True:
                self._wake.clear()
                self._settled.clear()
                try:
                    await self._turns_or_interruption()
                finally:
                    self._settled.set()
                if self._is_over():
                    await self._hooks.end()
                    await self._close("since its agent ended")
                    self._standing.report("stopped", self._last_words())
                    return self._conversation.last_turn if self._has_ended() else None
                if not self._has_work():
                    self._rest()
                    self._hooks.rested()
                    await self._wake.wait()
        except BaseException:
            await self._close("since its agent's process ended")
            raise
        finally:
            self._over.set()

    async def _close(self, reason: str) -> None:
        """No process is left of what its calls began."""
        try:
            await self._background.close(reason)
        finally:
            await self._hooks.close()
            await self._tools.lasting.close()

    async def deliver(self, envelope: Envelope) -> Receipt:
        """Durable before it is acknowledged; wakes the agent."""
        if envelope.recipient != self._boot.agent:
            return Receipt(outcome="no_such_agent", text=f"this is {self._boot.agent}, not {envelope.recipient}")
        receipt = await self._journal.store(envelope)
        if receipt.outcome == "stored":
            self._has_mail()
        return receipt

    def status(self) -> AgentStatus:
        return self._standing.status()

    async def drain(self) -> None:
        """Finish the step in flight and end, resumably. Returns when that has happened."""
        self._drain.set()
        self._tools.ways.waiting.end()
        self._wake.set()
        if self._running:
            await self._over.wait()

    async def interrupt(self, reason: str) -> None:
        """Cancel the turn. When this returns every call has a result; the agent goes on with its next mail."""
        work = self._work
        if work is not None and not work.done():
            self._interrupted = self._steps.called_off_because = reason
            work.cancel()
            await self._settled.wait()

    async def stop(self, reason: str) -> None:
        """Interrupt, and end. Returns when that has happened."""
        self._stopping = True
        self._wake.set()
        await self.interrupt(reason)
        if self._running:
            await self._over.wait()

    # --- turns ---

    async def _turns_or_interruption(self) -> None:
        self._work = work = asyncio.create_task(self._turns(), name=f"turn of {self._boot.agent}")
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            raise
        reason, self._interrupted = self._interrupted or "cancelled", None
        if not work.cancelled():
            work.result()
            return
        await self._steps.give_up(reason)
        if self._conversation.turn_open:
            await self._close_turn(End("stopped", reason))

    async def _turns(self) -> None:
        """Until there is nothing to do, or the agent is drained."""
        if not self._hailed and not self._drain.is_set():
            self._hailed = True
            await self._hooks.begin(resumed=self._conversation.step > 0)
        end = None if self._recovered else await self._recover()
        while not self._drain.is_set():
            if end is not None:
                await self._close_turn(end)
            if self._is_over() or (self._conversation.phase == "idle" and not self._has_work()):
                return
            end = await self._advance()

    async def _advance(self) -> End | None:
        """One step, or why the turn ends."""
        conversation = self._conversation
        if conversation.halted is not None:
            return End("hook", conversation.halted)
        if conversation.phase == "idle":
            return End("shutdown") if conversation.mailbox.asked_to_end else await self._step("")
        follows = after_message(conversation.spoken, conversation.in_a_row)
        if isinstance(follows, End) and follows.reason == "done":
            follows = await self._rest_or_go_on(follows)
        return await self._step(follows.note) if isinstance(follows, Ask) else follows

    async def _rest_or_go_on(self, end: End) -> Ask | End:
        """Hooks may send it on, but not one that was asked to end."""
        conversation = self._conversation
        why = await self._hooks.end_of_turn(conversation.last_text, [t.id for t in conversation.background.running()])
        return Ask(why) if why and not conversation.mailbox.asked_to_end else end

    async def _step(self, note: str) -> End | None:
        self._standing.begins()
        refusal = self._over_limit()
        if refusal:
            return self._limited(refusal)
        conversation = self._conversation
        await self._tools.belt.refresh()
        news = self._tools.belt.news(conversation.announced)
        taken = await self._mail()
        if isinstance(taken, End):
            return taken
        rendered = self._rendered(taken)
        words = self._hooks.words()
        said = (*words, note, news.text, *self._tools.ways.reminders(conversation.step + 1))
        input_blocks = (*rendered.blocks, *(TextBlock(text=text) for text in said if text))
        reservation = await self._reserve(sum(estimate_tokens(block.text) for block in input_blocks))
        if self._drain.is_set():
            return None
        if not reservation.ok:
            return self._limited(reservation.text)
        for spill in rendered.spills:
            await self._journal.patiently(lambda spill=spill: in_thread(_write, spill))
        turn = self._turn_number()
        mail = tuple(envelope.id for envelope in taken.envelopes)
        await self._journal.commit(
            RequestSent(
                turn=turn,
                step=conversation.step + 1,
                mail=mail,
                input=input_blocks,
                announced=news.announced,
                withdrawn=news.withdrawn,
            )
        )
        self._hooks.told(len(words))
        self._standing.report("working")
        return await self._steps.ask(self._drain.is_set)

    async def _mail(self) -> Taken | End:
        """The mail of the next step; the end of the turn when hooks leave nothing of what it would begin with."""
        conversation = self._conversation
        while True:
            taken = conversation.mailbox.take(MAIL_TOKENS)
            refused = await self._hooks.read(taken.envelopes)
            if not refused:
                return taken
            await self._journal.commit(*(PromptRefused(mail=each.mail, reason=each.reason) for each in refused))
            if conversation.phase == "idle" and not conversation.mailbox.unread:
                return End("hook", refused[-1].reason)

    async def _recover(self) -> End | None:
        """Bring what a crash left open to where the usual course goes on."""
        found = recovery(self._conversation, self._tools.belt.tool_of)
        self._recovered = True
        step = self._conversation.open
        if isinstance(found, AskAgain) and step is not None:
            self._standing.report("working", "goes on after a restart")
            await self._journal.commit(
                MessageWithdrawn(turn=step.turn, step=step.step, reason="the agent's process ended")
            )
            return await self._steps.ask(self._drain.is_set)
        if isinstance(found, Complete):
            self._standing.report("working", "goes on after a restart")
            await self._steps.complete(found)
        return None

    async def _close_turn(self, end: End) -> None:
        """Durable before anybody is told that the agent rests. An agent at its limit says so once."""
        conversation = self._conversation
        last = conversation.last_turn
        again = not conversation.turn_open and last is not None and last.reason == end.reason == "limit"
        if again:
            return
        reason = "shutdown" if conversation.mailbox.asked_to_end and end.reason != "stopped" else end.reason
        text = conversation.last_text if conversation.turn_open else ""
        await self._journal.commit(TurnClosed(turn=self._turn_number(), reason=reason, text=text, detail=end.detail))

    def _has_mail(self) -> None:
        self._held = False
        self._standing.has_new_mail()
        self._tools.ways.waiting.mail()
        self._wake.set()

    # --- limits ---

    def _over_limit(self) -> str:
        elapsed = self._timing.clock() - self._begun_at
        conversation = self._conversation
        return over_limit(self._boot.limits, conversation.requests, conversation.usage.total, elapsed)

    def _limited(self, why: str) -> End:
        """Mail that waits stays unread until something new comes; else the agent would spin."""
        self._held = True
        return End("limit", why)

    async def _reserve(self, input_tokens: int) -> Reservation:
        conversation = self._conversation
        known = conversation.context_tokens if conversation.usage.total else self._prefix_tokens
        tokens = known + input_tokens + self._steps.output_tokens()
        while True:
            try:
                return await self._ports.budget.reserve(
                    conversation.step + 1, self._boot.model, tokens, conversation.last_usage
                )
            except RetinueError as error:
                self._standing.report("waiting", f"for its budget: {error}")
                await self._pause(BUDGET_AGAIN_S)
                if self._drain.is_set():
                    return Reservation(ok=False, text="drained")

    # --- small things ---

    def _turn_number(self) -> int:
        """Of the open turn, or of the one that would be next."""
        return self._conversation.turn + (not self._conversation.turn_open)

    def _rendered(self, taken: Taken) -> Rendered:
        trusted = frozenset({self._boot.parent}) if self._boot.parent else frozenset[str]()
        return render(taken, MAIL_TOKENS, self._tools.context.results_dir, trusted)

    def _has_work(self) -> bool:
        mailbox = self._conversation.mailbox
        return mailbox.asked_to_end or (mailbox.unread > 0 and not self._held)

    def _is_over(self) -> bool:
        return self._drain.is_set() or self._has_ended()

    def _has_ended(self) -> bool:
        """Other than to be taken up again."""
        conversation = self._conversation
        done = self._boot.role == "child" and conversation.last_turn is not None and not conversation.turn_open
        return self._stopping or conversation.mailbox.ended or done

    def _rest(self) -> None:
        last = self._conversation.last_turn
        state = "failed" if last is not None and last.reason in _FAILED else "idle"
        self._standing.report(state, self._last_words(), out_of_reach=self._held)

    def _last_words(self) -> str:
        last = self._conversation.last_turn
        return "" if last is None or last.reason == "done" else f"{last.reason}: {last.detail}".rstrip(": ")

    async def _pause(self, seconds: float) -> None:
        """That long, or until the agent is drained."""
        waits = [
            asyncio.ensure_future(self._timing.sleep(seconds)),
            asyncio.ensure_future(self._drain.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _write(spill: Spill) -> None:
    try:
        Path(spill.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        spill.path.write_text(spill.text, "utf-8", errors="replace")
    except OSError as error:
        raise EnvironmentProblem(f"{spill.path} cannot be written: {error.strerror}") from error
