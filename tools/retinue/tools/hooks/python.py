"""Hooks that are Python functions of the user's own."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from importlib.metadata import entry_points
from typing import TypeVar, cast

from retinue.tools.errors import SpecError
from retinue.tools.hooks.answers import NOTHING, Answer
from retinue.tools.hooks.payloads import Payload

PythonCall = Callable[[Payload], Answer | Awaitable[Answer | None] | None]
T = TypeVar("T")
GROUP = "retinue.hooks"


@lru_cache(maxsize=64)
def function_of(call: str) -> PythonCall:
    """By `module:function`, or by the name of an entry point. SpecError: there is no such function."""
    try:
        if ":" not in call:
            found = next(iter(entry_points(group=GROUP, name=call)), None)
            if found is None:
                raise SpecError(f"there is no entry point {call!r} of the group {GROUP}: install what brings it")
            function = found.load()
        else:
            module, _, name = call.partition(":")
            function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"{call}: it cannot be loaded: {error}") from None
    if not callable(function):
        raise SpecError(f"{call} is no function")
    return cast(PythonCall, function)


async def answer_of(call: str, payload: Payload) -> Answer:
    """What the function says. One that is not asynchronous runs in a thread: who waits no longer leaves it behind."""
    function = await _in_own_thread(lambda: function_of(call))
    said = (
        function(payload) if inspect.iscoroutinefunction(function) else await _in_own_thread(lambda: function(payload))
    )
    if inspect.isawaitable(said):
        said = await said
    if said is None:
        return NOTHING
    return said if isinstance(said, Answer) else Answer(problem=f"it answered with {type(said).__name__}, not Answer")


async def _in_own_thread(work: Callable[[], T]) -> T:
    """Not one of the loop's pool: a function that hangs would keep the process from its end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(act: Callable[[], None]) -> None:
        if not done.done():
            act()

    def run() -> None:
        try:
            value = work()
        except Exception as error:
            act = partial(done.set_exception, error)
        else:
            act = partial(done.set_result, value)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(tell, act)

    threading.Thread(target=run, name="python hook", daemon=True).start()
    return await done
