"""One step: a request, its message, and the results of its calls. Records everything in the order of `records`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from retinue.agents.boot import AgentBoot
from retinue.agents.history import OpenStep
from retinue.agents.journal import Journal, Sleep
from retinue.agents.model.messages import ToolUseBlock, Usage
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    MessageStarted,
    ModelPort,
    ModelRequest,
    SearchFound,
    TextDelta,
)
from retinue.agents.own.ways import Ways
from retinue.agents.ports import CheckpointPort
from retinue.agents.records import (
    AgentWaits,
    BlockComplete,
    MessageClosed,
    MessageWithdrawn,
    StepClosed,
    ToolFinished,
)
from retinue.agents.recovery import Complete
from retinue.agents.standing import Standing
from retinue.agents.toolbelt import Toolbelt
from retinue.agents.turn import Again, End, RetryPolicy, after_break, output_limit
from retinue.tools.base import ToolContext
from retinue.tools.errors import InvariantBroken, RetinueError
from retinue.tools.execution.calls import CallResult, Runner, ToolCall
from retinue.tools.execution.streaming import StreamingExecutor
from retinue.tools.execution.synthetic import Cause, Closing, synthetic
from retinue.tools.lasting import Lasting
from retinue.tools.results.limits import MESSAGE_CHARS
from retinue.tools.results.store import ResultStore
from retinue.tools.threads import in_thread


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What the model is told, and what carries out its calls. `context` is where the agent's first call acts."""

    system: str
    belt: Toolbelt
    runner: Runner
    context: ToolContext
    store: ResultStore
    ways: Ways
    lasting: Lasting = field(default_factory=Lasting)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time and chance. `pause` waits that long, or until the agent is drained."""

    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    retries: RetryPolicy = field(default_factory=RetryPolicy)


class Steps:
    """Runs one step at a time.

    context             the tools' context after the calls so far
    called_off_because  what calls are told when the step is cancelled; to be set before
    """

    def __init__(
        self,
        boot: AgentBoot,
        journal: Journal,
        model: ModelPort,
        tools: Toolbox,
        checkpoint: CheckpointPort,
        standing: Standing,
        timing: Timing,
        pause: Callable[[float], Awaitable[None]],
        watch: Callable[[str], None] | None = None,
    ) -> None:
        self.context = tools.context
        self.called_off_because = "the agent stopped"
        self._boot = boot
        self._journal = journal
        self._conversation = journal.conversation
        self._model = model
        self._tools = tools
        self._checkpoint = checkpoint
        self._standing = standing
        self._timing = timing
        self._pause = pause
        self._watch = watch
        self._failures = 0
        self._failing_since = 0.0
        self._raised_limit_refused = False
        self._left: tuple[CallResult, ...] = ()

    async def ask(self, draining: Callable[[], bool]) -> End | None:
        """From a recorded request to a closed step. End: there is no message; None with the step open: drained."""
        while True:
            broken = await self._attempt()
            if broken is None:
                self._failures = 0
                return None
            verdict = self._after(broken)
            if isinstance(verdict, End):
                return verdict
            await self._wait(verdict.after_s, broken)
            if self._conversation.open is None or draining():
                return None

    async def complete(self, plan: Complete) -> None:
        """Close a step that a crash left open."""
        step = self._step()
        if plan.close_message:
            await self._journal.write(self._closed(step, None, Usage(), self._boot.model))
        for result in plan.answered:
            await self._finished(step, result)
        await self._act(plan.run)
        await self._close_step()

    async def give_up(self, reason: str) -> None:
        """After a cancellation: every call gets a result, and the step is closed or its request withdrawn."""
        left, self._left = self._left, ()
        step = self._conversation.open
        if step is None:
            return
        if step.closed is None and not step.blocks:
            await self._journal.write(MessageWithdrawn(turn=step.turn, step=step.step, reason=reason))
            return
        if step.closed is None:
            await self._journal.write(self._closed(step, None, Usage(), self._boot.model))
        results = {result.call_id: result for result in left}
        for call in step.calls():
            if call.id not in step.finished:
                began = (started := step.started.get(call.id)) is not None
                read_only = started is not None and started.read_only
                closing = Closing(Cause.ABORTED, reason)
                missing = synthetic(call.id, call.name, closing, began=began, read_only=read_only)
                await self._finished(step, results.get(call.id, missing))
        await self._close_step()

    # --- one attempt ---

    async def _attempt(self) -> Broken | None:
        executor = StreamingExecutor(self._tools.runner, self.context)
        taking: asyncio.Task[None] | None = None
        step = self._step()

        def submit(call: ToolUseBlock) -> None:
            nonlocal taking
            executor.submit(_call_of(call))
            taking = taking or asyncio.create_task(self._take(executor, step))

        try:
            broken = await self._listen(step, submit)
            if broken is not None and executor.withdraw():
                await self._dropped(executor, taking)
                await self._journal.write(
                    MessageWithdrawn(turn=step.turn, step=step.step, reason=f"{broken.reason}: {broken.message}")
                )
                return broken
            if broken is not None:
                await self._journal.write(self._closed(step, None, Usage(), self._boot.model))
            executor.end_of_stream()
            if taking is not None:
                await taking
        except BaseException:
            await self._called_off(executor, taking)
            raise
        finally:
            self.context = executor.context
        await self._close_step()
        return broken

    async def _listen(self, step: OpenStep, submit: Callable[[ToolUseBlock], None]) -> Broken | None:
        """Hear the message to its end; the reason when it has none."""
        model = self._boot.model
        end: MessageDone | Broken | None = None
        try:
            async for event in self._model.stream(self._request(step)):
                match event:
                    case TextDelta() | SearchFound():
                        self._show(event)
                    case MessageStarted():
                        model = event.model
                    case BlockDone(block=given):
                        block = self._conversation.acceptable(given)
                        index = len(step.blocks)
                        await self._journal.write(
                            BlockComplete(turn=step.turn, step=step.step, index=index, block=block)
                        )
                        if isinstance(block, ToolUseBlock):
                            submit(block)
                    case MessageDone() | Broken():
                        end = event
        except RetinueError as error:
            end = Broken(reason="dropped", message=str(error))
        if isinstance(end, MessageDone):
            await self._journal.write(self._closed(step, end, end.usage, model))
            return None
        return end or Broken(reason="truncated", message="the stream ended before its message")

    def _show(self, event: TextDelta | SearchFound) -> None:
        """Searches of the provider belong to questions beside the conversation: none comes here."""
        if self._watch is not None and isinstance(event, TextDelta):
            self._watch(event.text)

    async def _act(self, calls: Sequence[ToolUseBlock]) -> None:
        """Calls that are all known. The executor keeps the order and the rules."""
        if not calls:
            return
        executor = StreamingExecutor(self._tools.runner, self.context)
        try:
            for call in calls:
                executor.submit(_call_of(call))
            executor.end_of_stream()
            await self._take(executor, self._step())
        except BaseException:
            await self._called_off(executor, None)
            raise
        finally:
            self.context = executor.context

    async def _take(self, executor: StreamingExecutor, step: OpenStep) -> None:
        async for result in executor.results():
            await self._finished(step, result)

    async def _dropped(self, executor: StreamingExecutor, taking: asyncio.Task[None] | None) -> None:
        """The results of a withdrawn message are nobody's; but its calls have to be over before it is."""
        if taking is not None:
            await _ended(taking)
        async for _ in executor.results():
            pass

    async def _called_off(self, executor: StreamingExecutor, taking: asyncio.Task[None] | None) -> None:
        if taking is not None:
            await _ended(taking)
        self._left = await executor.close(self.called_off_because)

    # --- records ---

    async def _finished(self, step: OpenStep, result: CallResult) -> None:
        await self._journal.write(ToolFinished(turn=step.turn, step=step.step, result=result))

    def _closed(self, step: OpenStep, end: MessageDone | None, usage: Usage, model: str) -> MessageClosed:
        reason = end.stop_reason if end else None
        return MessageClosed(turn=step.turn, step=step.step, stop_reason=reason, usage=usage, model=model)

    async def _close_step(self) -> None:
        step = self._step()
        changed = step.changed_something or self._conversation.changed_beside
        sha = await self._checkpoint.checkpoint() if changed else None
        shortened = await self._shortened(step)
        await self._journal.write(StepClosed(turn=step.turn, step=step.step, checkpoint=sha, shortened=shortened))

    async def _shortened(self, step: OpenStep) -> dict[str, str]:
        """All results of a message together must fit: the largest are put aside, also after a crash the same ones."""
        results = [step.finished[call.id] for call in step.calls() if call.id in step.finished]
        if sum(len(result.content) for result in results) <= MESSAGE_CHARS:
            return {}
        tools = {result.name: self._tools.belt.tool_of(result.name) for result in results}
        spared = {name for name, tool in tools.items() if tool is not None and tool.max_result_chars is None}
        fitted = await in_thread(lambda: self._tools.store.fit_message(results, spared=spared))
        pairs = zip(results, fitted, strict=True)
        return {after.call_id: after.content for before, after in pairs if after.content != before.content}

    def _step(self) -> OpenStep:
        step = self._conversation.open
        if step is None:
            raise InvariantBroken("there is no step in flight")
        return step

    # --- asking ---

    def output_tokens(self) -> int:
        if self._raised_limit_refused:
            return self._boot.max_tokens
        return output_limit(self._boot.max_tokens, self._conversation.in_a_row)

    def _request(self, step: OpenStep) -> ModelRequest:
        """Not validated again: its parts are, and going over a long conversation would cost more with every turn."""
        return ModelRequest.model_construct(
            run=self._boot.run,
            agent=self._boot.name,
            model=self._boot.model,
            system=self._tools.system,
            messages=self._conversation.messages(),
            tools=self._tools.belt.specs(),
            max_tokens=self.output_tokens(),
            attempt=step.withdrawn,
        )

    def _after(self, broken: Broken) -> Again | End:
        now = self._timing.clock()
        if broken.reason == "invalid_request" and self.output_tokens() > self._boot.max_tokens:
            self._raised_limit_refused = True
            return Again(0.0)
        self._failing_since = now if self._failures == 0 else self._failing_since
        self._failures += 1
        elapsed = now - self._failing_since
        verdict = after_break(self._timing.retries, broken, self._failures, elapsed, self._timing.chance())
        if isinstance(verdict, End):
            self._failures = 0
        return verdict

    async def _wait(self, seconds: float, broken: Broken) -> None:
        what = f"for the model ({broken.reason}: {broken.message})"
        self._standing.report("waiting", f"{what}, {seconds:.1f} s")
        await self._journal.write(AgentWaits(turn=self._conversation.turn, what=what, seconds=seconds))
        await self._pause(seconds)
        self._standing.report("working")


def _call_of(block: ToolUseBlock) -> ToolCall:
    return ToolCall(id=block.id, name=block.name, input=block.input, malformed=block.malformed)


async def _ended(task: asyncio.Task[None]) -> None:
    """Told to stop, and over."""
    task.cancel()
    await asyncio.wait({task})
