"""The REPL of one agent: a process that comes and goes, and one run of code in it at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from retinue.tools.base import ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.inner import InnerScope
from retinue.tools.extension.repl.constants import GRACE_S, MAX_OUTPUT_CHARS, MAX_SHOWN_CHARS
from retinue.tools.extension.repl.framing import Asked, BadFrame, Done, Frame, GivenUp, Printed, Ready
from retinue.tools.extension.repl.functions import Function
from retinue.tools.extension.repl.process import Process
from retinue.tools.extension.repl.words import Kept
from retinue.tools.ports import ShellPort
from retinue.tools.text import printable


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run of code ended.

    value    the last expression as text
    error    the traceback
    stopped  why it was stopped from outside
    gone     why all variables are gone now
    lost     why those of earlier calls were gone before this one
    """

    output: str
    value: str | None = None
    error: str | None = None
    stopped: str = ""
    gone: str = ""
    lost: str = ""


@dataclass(slots=True)
class Session:
    """Implements `Lives`."""

    clock: Callable[[], float] = time.monotonic
    grace_s: float = GRACE_S
    _process: Process | None = None
    _runs: int = 0
    _lost: str = ""
    _place: tuple[Path, ShellPort] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def run(
        self,
        code: str,
        ctx: ToolContext,
        scope: InnerScope,
        functions: Sequence[Function],
        timeout_s: float,
        on_output: Callable[[str], None],
    ) -> Ran:
        """To its end, its time-out or cancellation: then nothing of it goes on."""
        async with self._lock:
            await self._look((ctx.root, ctx.shell))
            known: Sequence[Function] = functions if self._process is None else ()
            process = self._process = self._process or await Process.start(ctx)
            self._runs += 1
            run = _Run(process, scope, self._runs, timeout_s, on_output, self.clock, self.grace_s)
            try:
                ran = await run.through(code, known)
            except BaseException:
                if not run.settled:
                    self._lost = "the call before this one was called off, and its code did not stop"
                    await self.close()
                raise
            finally:
                await scope.close()
            if ran.gone:
                await self.close()
            lost, self._lost = self._lost, ""
            return replace(ran, lost=lost)

    async def _look(self, place: tuple[Path, ShellPort]) -> None:
        """Whether the process ended while nobody did, or belongs to a workspace that its agent has left."""
        process, (before, self._place) = self._process, (self._place, place)
        if process is None:
            return
        if not process.is_alive:
            self._lost = f"between the calls the Python process ended ({process.how_it_ended()})"
            await self.close()
        elif before != place:
            self._lost = "the workspace is another one now, so the Python process was started anew"
            await self.close()


class _Run:
    """One run: what the process says is taken in, what the code calls is called, and its time is watched."""

    def __init__(
        self,
        process: Process,
        scope: InnerScope,
        number: int,
        timeout_s: float,
        on_output: Callable[[str], None],
        clock: Callable[[], float],
        grace_s: float,
    ) -> None:
        self.settled = False
        self._process = process
        self._scope = scope
        self._number = number
        self._timeout_s = timeout_s
        self._on_output = on_output
        self._clock = clock
        self._grace_s = grace_s
        self._left_s = timeout_s
        self._output = Kept(MAX_SHOWN_CHARS)
        self._stopped = ""
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._receiving = asyncio.create_task(process.receive())

    async def through(self, code: str, functions: Sequence[Function]) -> Ran:
        """`functions` are those that the process does not know yet."""
        given: list[JsonValue] = [each.as_json() for each in functions]
        try:
            self._process.send({"kind": "run", "id": self._number, "code": code, "functions": given})
            ran = await self._until_done()
        except asyncio.CancelledError:
            with suppress(BadFrame):
                self._stop("it was called off")
                ran = await self._until_done()
                self.settled = not ran.gone
            raise
        except BadFrame as bad:
            ran = self._over(gone=f"{bad} So it was ended")
        finally:
            self._receiving.cancel()
            self._let_go()
        self.settled = not ran.gone
        return ran

    async def _until_done(self) -> Ran:
        while True:
            if not await self._waited():
                if self._stopped:
                    return self._over(gone="the code did not stop when it was told to, so its process was ended")
                self._stop(f"it did not end within {self._timeout_s:g} s")
            elif self._receiving.done():
                ran = await self._taken(self._receiving.result())
                if ran is not None:
                    return ran
                self._receiving = asyncio.create_task(self._process.receive())

    async def _waited(self) -> bool:
        """Until something happens; False when time is up. The time that tools take is not the code's."""
        tools_run = bool(self._calls) and not self._stopped
        begun = self._clock()
        done, _ = await asyncio.wait(
            [self._receiving, *self._calls.values()],
            timeout=None if tools_run else max(0.0, self._left_s),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not tools_run:
            self._left_s -= self._clock() - begun
        for number in [number for number, task in self._calls.items() if task.done()]:
            task = self._calls.pop(number)
            if not task.cancelled():
                task.result()
        return bool(done)

    async def _taken(self, frame: Frame | None) -> Ran | None:
        match frame:
            case Printed(text=text):
                self._printed(text)
            case Asked():
                if frame.id in self._calls:
                    raise BadFrame("The Python process used one number for two calls.")
                self._asked(frame)
            case GivenUp(id=number):
                if number in self._calls:
                    self._calls[number].cancel()
            case Done(id=number) if number == self._number:
                return self._over(frame.value, frame.error)
            case Done() | Ready():
                raise BadFrame("The Python process spoke of a run that there is none of.")
            case None:
                return self._over(gone=await self._why_it_ended())
        return None

    def _printed(self, text: str) -> None:
        self._output.add(text)
        self._on_output(printable(text))
        if self._output.total > MAX_OUTPUT_CHARS and not self._stopped:
            self._stop(f"it printed more than {MAX_OUTPUT_CHARS:,} characters")

    def _asked(self, asked: Asked) -> None:
        """What is refused is so at once: the code's time goes on meanwhile."""
        try:
            if self._stopped:
                raise ToolError(f"Not run: the code is being stopped, since {self._stopped}.")
            call = self._scope.start(asked.name, asked.input)
        except ToolError as refused:
            self._answer(asked.id, str(refused), error=True)
        else:
            self._calls[asked.id] = asyncio.create_task(self._call(asked.id, call))

    async def _call(self, number: int, call: asyncio.Task[CallResult]) -> None:
        """The code gets an answer, unless it does not wait for one any more."""
        result = await call
        self._answer(number, _text_of(result), error=result.is_error)

    def _answer(self, number: int, text: str, *, error: bool) -> None:
        self._process.send({"kind": "answer", "id": number, "text": text, "error": error})

    def _stop(self, why: str) -> None:
        self._stopped, self._left_s = why, self._grace_s
        self._let_go()
        self._process.send({"kind": "interrupt"})

    def _let_go(self) -> None:
        """Calls in flight end with the run that made them."""
        calls, self._calls = self._calls, {}
        for number, task in calls.items():
            task.cancel()
            with suppress(BadFrame, OSError):
                self._answer(number, "The call was called off.", error=True)

    async def _why_it_ended(self) -> str:
        said = await self._process.last_words()
        return f"the Python process ended ({self._process.how_it_ended()}{f': {said}' if said else ''})"

    def _over(self, value: str | None = None, error: str | None = None, *, gone: str = "") -> Ran:
        return Ran(
            self._output.text(),
            None if value is None else printable(value),
            None if error is None else printable(error),
            self._stopped,
            gone,
        )


def _text_of(result: CallResult) -> str:
    if not result.media:
        return result.content
    return f"{result.content}\n[{len(result.media)} images or documents of this result are not given to code.]"
