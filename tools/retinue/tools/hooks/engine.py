"""Asks all hooks of an event at once, and hears them together. A hook that fails stops nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from retinue.tools.errors import RetinueError
from retinue.tools.hooks.answers import NOTHING, Answer
from retinue.tools.hooks.asking import answer_of_model, answer_over_http
from retinue.tools.hooks.command import CommandRunner, TimedOut
from retinue.tools.hooks.config import CommandHook, HttpHook, PromptHook, PythonHook, Registered
from retinue.tools.hooks.events import MOST_SESSION_END_S, Event
from retinue.tools.hooks.match import Call, concerns, fits_condition
from retinue.tools.hooks.merge import SILENCE, Verdict, merged
from retinue.tools.hooks.payloads import Payload, Situation
from retinue.tools.hooks.python import answer_of
from retinue.tools.hooks.runs import HookRun, Outcome
from retinue.tools.ports import SideQueryPort
from retinue.tools.text import one_line

OnRan = Callable[[Event, tuple[HookRun, ...], Verdict], Awaitable[None]]


async def _unheard(event: Event, runs: tuple[HookRun, ...], verdict: Verdict) -> None:
    del event, runs, verdict


@dataclass(frozen=True, slots=True)
class Means:
    """What hooks are run with.

    env   the tools' environment, with what hooks get besides
    side  a small model, for questions
    """

    commands: CommandRunner
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    side: SideQueryPort | None = None
    clock: Callable[[], float] = time.monotonic


class Hooks:
    """The hooks of one agent.

    situation  where the agent stands; fills what a payload leaves open
    on_ran     told after each event that concerned any hook, before its verdict counts
    """

    def __init__(
        self,
        hooks: Sequence[Registered],
        means: Means,
        situation: Callable[[], Situation] = Situation,
        on_ran: OnRan = _unheard,
    ) -> None:
        self._hooks = tuple(hooks)
        self._situation = situation
        self._means = means
        self._events = frozenset(each.event for each in hooks)
        self._once: set[Registered] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._late: list[str] = []
        self.on_ran = on_ran

    def has(self, event: Event) -> bool:
        return event in self._events

    async def fire(self, payload: Payload, call: Call | None = None) -> Verdict:
        """Never raises but for cancellation; then nothing that it started is left."""
        if payload.event not in self._events:
            return SILENCE
        payload = payload.placed(self._situation())
        chosen = self._chosen(payload, call)
        waited = [each for each in chosen if not _runs_beside(each)]
        for each in chosen:
            if _runs_beside(each):
                self._start_beside(each, payload, self._means)
        if not chosen:
            return SILENCE
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_asked(each, payload, self._means)) for each in waited]
        heard = [task.result() for task in tasks]
        verdict = merged([(each.name, answer) for each, (_, answer) in zip(waited, heard, strict=True)])
        begun = tuple(HookRun(name=each.name, outcome="started") for each in chosen if _runs_beside(each))
        await self.on_ran(payload.event, (*(run for run, _ in heard), *begun), verdict)
        return verdict

    def take_late(self) -> tuple[str, ...]:
        """What hooks have said meanwhile that nobody waited for; once."""
        late, self._late = tuple(self._late), []
        return late

    async def close(self) -> None:
        """End the hooks that nobody waits for."""
        beside = tuple(self._beside)
        for task in beside:
            task.cancel()
        if beside:
            await asyncio.wait(beside)

    def _chosen(self, payload: Payload, call: Call | None) -> list[Registered]:
        """Each handler once, however often it is written."""
        subjects = call.names if call is not None else payload.subjects
        found: dict[str, Registered] = {}
        for each in self._hooks:
            if each.event != payload.event or not concerns(each.matcher, subjects) or not _meets(each, call):
                continue
            if each.handler.once and each.source == "skill":
                if any(each is other for other in self._once):
                    continue
                self._once.add(each)
            found.setdefault(each.handler.model_dump_json(), each)
        return list(found.values())

    def _start_beside(self, each: Registered, payload: Payload, means: Means) -> None:
        task = asyncio.create_task(self._hear_late(each, payload, means), name=each.name)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _hear_late(self, each: Registered, payload: Payload, means: Means) -> None:
        run, answer = await _asked(each, payload, means)
        rewakes = isinstance(each.handler, CommandHook) and each.handler.async_rewake
        said = (answer.blocked or answer.reason,) if rewakes and run.exit == 2 else answer.contexts
        self._late += [text for text in said if text]
        await self.on_ran(payload.event, (run,), Verdict(messages=(answer.message,) if answer.message else ()))


def _runs_beside(each: Registered) -> bool:
    return isinstance(each.handler, CommandHook) and (each.handler.runs_beside or each.handler.async_rewake)


def _meets(each: Registered, call: Call | None) -> bool:
    condition = each.handler.condition
    if condition is None:
        return True
    try:
        return call is not None and fits_condition(condition, call)
    except Exception:
        return True  # a condition that cannot be looked at must not switch a guard off


async def _asked(each: Registered, payload: Payload, means: Means) -> tuple[HookRun, Answer]:
    begun = means.clock()
    exit_code: int | None = None
    outcome: Outcome = "ok"
    try:
        exit_code, answer = await _answer(each, payload, means)
    except (TimedOut, TimeoutError):
        outcome, answer = "timeout", Answer(problem=f"it did not end within {_deadline(each):g} s")
    except RetinueError as error:
        answer = Answer(problem=one_line(str(error)))
    except Exception as error:
        answer = Answer(problem=f"it failed: {type(error).__name__}")
    if outcome == "ok":
        outcome = _outcome(answer)
    ms = round((means.clock() - begun) * 1_000)
    return HookRun(name=each.name, outcome=outcome, exit=exit_code, ms=ms, problem=answer.problem), answer


def _outcome(answer: Answer) -> Outcome:
    if answer.blocked is not None or answer.decision == "deny":
        return "blocked"
    return "failed" if answer.problem and answer is not NOTHING else "ok"


def _deadline(each: Registered) -> float:
    return min(each.deadline_s, MOST_SESSION_END_S) if each.event == "SessionEnd" else each.deadline_s


async def _answer(each: Registered, payload: Payload, means: Means) -> tuple[int | None, Answer]:
    seconds = _deadline(each)
    match each.handler:
        case CommandHook() as command:
            return await means.commands.answer(command, payload, seconds)
        case HttpHook() as http:
            async with asyncio.timeout(seconds):
                return None, await answer_over_http(http, payload, means.env, seconds)
        case PromptHook() as prompt:
            async with asyncio.timeout(seconds):
                return None, await answer_of_model(prompt, payload, means.side)
        case PythonHook(call=call):
            async with asyncio.timeout(seconds):
                return None, await answer_of(call, payload)
        case _:
            assert_never(each.handler)
