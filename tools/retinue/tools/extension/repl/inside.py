"""The process that runs an agent's code: a program of its own, with the standard library and nothing else.

It is started as `python -I -S -c <this text> INCOMING OUTGOING`, the two being named pipes to the agent. What is
printed, by the code or by what it starts, goes through a pipe of our own to the agent, in order; calls of tools go
there as requests, and their results come back. Nothing here guards anything: whoever runs code here can say all that
this program can say.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import codecs
import concurrent.futures
import contextlib
import fcntl
import inspect
import io
import json
import linecache
import os
import queue
import select
import signal
import sys
import termios
import threading
import time
import traceback
import types
from collections.abc import Coroutine
from typing import Any, NoReturn

CHUNK = 65_536
MOST_TEXT = 30_000
INTERRUPT_AGAIN_S = 0.3
DRAIN_S = 1.0
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class ToolError(Exception):
    """A tool said no, or failed. `tool` is its name, the text is what it said."""

    def __init__(self, tool: str, text: str) -> None:
        super().__init__(text)
        self.tool = tool


class Link:
    """Both pipes to the agent. Only threads write, so that an interrupt of the code cuts no message in two."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.lock = threading.Lock()
        self.outbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self.send_all, daemon=True).start()

    def send_all(self) -> None:
        while True:
            self.send(self.outbox.get())

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        data = memoryview(len(body).to_bytes(4, "big") + body)
        with self.lock:
            while data:
                data = data[os.write(self.outgoing, data) :]

    def receive(self) -> dict[str, Any]:
        return json.loads(self.exactly(int.from_bytes(self.exactly(4), "big")))

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = os.read(self.incoming, size - len(data))
            if not piece:
                os._exit(0)
            data += piece
        return data

    def close(self) -> None:
        os.close(self.incoming)
        os.close(self.outgoing)


class Output:
    """What is printed by anything in this process, or below it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.reading, writing = os.pipe()
        for target in (1, 2):
            os.dup2(writing, target)
        os.close(writing)
        self.lock = threading.Lock()
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.streams = tuple(
            io.TextIOWrapper(io.BufferedWriter(file), "utf-8", errors, line_buffering=True)
            for file, errors in (
                (io.FileIO(1, "w", closefd=False), "replace"),
                (io.FileIO(2, "w", closefd=False), "backslashreplace"),
            )
        )
        sys.stdout, sys.stderr = self.streams
        threading.Thread(target=self.pump, daemon=True).start()

    def pump(self) -> None:
        while True:
            self.wait_for_more()
            with self.lock:
                text = self.decoder.decode(os.read(self.reading, CHUNK))
                if text:
                    self.link.send({"kind": "out", "text": text})

    def wait_for_more(self) -> None:
        poll = select.poll()
        poll.register(self.reading)
        poll.poll()

    def drain(self) -> None:
        """All that was printed so far is on its way. What goes on printing is not waited for."""
        for stream in self.streams:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        until = time.monotonic() + DRAIN_S
        while self.waiting() and time.monotonic() < until:
            time.sleep(0.001)
        if self.lock.acquire(timeout=DRAIN_S):
            self.lock.release()

    def waiting(self) -> int:
        return int.from_bytes(fcntl.ioctl(self.reading, termios.FIONREAD, bytes(4)), sys.byteorder)


class Calls:
    """Calls of tools that wait for their results."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.lock = threading.Lock()
        self.count = 0
        self.waiting: dict[int, tuple[str, concurrent.futures.Future[str]]] = {}

    def ask(self, name: str, values: dict[str, Any]) -> tuple[int, concurrent.futures.Future[str]]:
        text = json.dumps(values, default=os.fspath, allow_nan=False, ensure_ascii=False)
        values = json.loads(text.encode())  # half of a surrogate pair fits into no message, and fails here
        future: concurrent.futures.Future[str] = concurrent.futures.Future()
        with self.lock:
            self.count += 1
            number = self.count
            self.waiting[number] = (name, future)
        self.link.outbox.put({"kind": "call", "id": number, "name": name, "input": values})
        return number, future

    def give_up(self, number: int) -> None:
        if self.waiting.pop(number, None) is not None:
            self.link.outbox.put({"kind": "cancel", "id": number})

    def answer(self, message: dict[str, Any]) -> None:
        name, future = self.waiting.pop(message["id"], ("", None))
        if future is None or not future.set_running_or_notify_cancel():
            return
        if message["error"]:
            future.set_exception(ToolError(name, message["text"]))
        else:
            future.set_result(message["text"])


class ToolFunction:
    """One tool: `await Tool(…)`, or `Tool.sync(…)` where nothing can be awaited, as in a thread."""

    def __init__(self, calls: Calls, name: str, parameters: list[str], doc: str) -> None:
        self.__doc__ = doc
        self._calls = calls
        self._name = name
        self._parameters = parameters

    def __call__(self, *values: Any, **named: Any) -> Coroutine[Any, Any, str]:
        return self._awaited(self._input(values, named))

    def sync(self, *values: Any, **named: Any) -> str:
        number, future = self._calls.ask(self._name, self._input(values, named))
        try:
            return future.result()
        finally:
            self._calls.give_up(number)

    async def _awaited(self, given: dict[str, Any]) -> str:
        number, future = self._calls.ask(self._name, given)
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._calls.give_up(number)

    def _input(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(values) > len(self._parameters):
            raise TypeError(f"{self._name} takes {len(self._parameters)} values: {', '.join(self._parameters)}")
        given = dict(zip(self._parameters, values, strict=False))
        if twice := given.keys() & named.keys():
            raise TypeError(f"{self._name} was given {', '.join(sorted(twice))} twice")
        return {**given, **named}

    def __repr__(self) -> str:
        return f"<tool {self._name}({', '.join(self._parameters)})>"


class Repl:
    def __init__(self, link: Link, output: Output) -> None:
        self.link = link
        self.output = output
        self.calls = Calls(link)
        self.runs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.main_thread = threading.get_ident()
        self.pid = os.getpid()
        self.task: asyncio.Task[Any] | None = None
        self.cells = 0
        self.module = types.ModuleType("__main__")
        self.names: dict[str, Any] = self.module.__dict__
        self.names.update(ToolError=ToolError, __builtins__=builtins)
        sys.modules["__main__"] = self.module

    # --- other threads ---

    def listen(self) -> None:
        while True:
            message = self.link.receive()
            kind = message["kind"]
            if kind == "run":
                self.runs.put(message)
            elif kind == "answer":
                self.calls.answer(message)
            else:
                threading.Thread(target=self.interrupt, daemon=True).start()

    def interrupt(self) -> None:
        """Once by calling the task off, which lets it tidy up; then by KeyboardInterrupt, wherever the code is."""
        task = self.task
        if task is None:
            return
        self.loop.call_soon_threadsafe(task.cancel)
        time.sleep(INTERRUPT_AGAIN_S)
        if self.task is task:
            signal.pthread_kill(self.main_thread, signal.SIGINT)

    # --- the main thread ---

    def serve(self) -> NoReturn:
        signal.signal(signal.SIGINT, self.on_interrupt)
        threading.Thread(target=self.listen, daemon=True).start()
        self.link.outbox.put({"kind": "ready"})
        while True:
            message = self.runs.get()
            for each in message["functions"]:
                self.names[each["name"]] = ToolFunction(self.calls, **each)
            value, error = self.run(message["code"])
            if os.getpid() != self.pid:
                os._exit(0)
            self.output.drain()
            self.link.outbox.put({"kind": "done", "id": message["id"], "value": value, "error": error})

    def on_interrupt(self, *_: object) -> None:
        if self.task is not None:
            raise KeyboardInterrupt

    def run(self, code: str) -> tuple[str | None, str | None]:
        """The last expression as text, or what went wrong."""
        try:
            return self.completed(code), None
        except BaseException as error:
            self.task = None
            return None, explained(error)

    def completed(self, code: str) -> str | None:
        self.cells += 1
        name = f"<repl {self.cells}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        self.task = task = self.loop.create_task(self.evaluated(*parts(code, name)))
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                self.loop.run_until_complete(task)
            raise
        finally:
            self.task = None

    async def evaluated(self, body: types.CodeType, last: types.CodeType | None) -> str | None:
        await self.executed(body)
        if last is None:
            return None
        value = await self.executed(last)
        if inspect.iscoroutine(value):
            value = await value
        if value is None:
            return None
        self.names["_"] = value
        return shortened(value if isinstance(value, str) and "\n" in value else repr(value))

    async def executed(self, code: types.CodeType) -> Any:
        value = eval(code, self.names)
        return await value if code.co_flags & inspect.CO_COROUTINE else value


def parts(code: str, name: str) -> tuple[types.CodeType, types.CodeType | None]:
    """All but a last expression, and that."""
    tree = ast.parse(code, name)
    end = tree.body[-1] if tree.body else None
    if not isinstance(end, ast.Expr):
        return compile(tree, name, "exec", FLAGS), None
    del tree.body[-1]
    return compile(tree, name, "exec", FLAGS), compile(ast.Expression(end.value), name, "eval", FLAGS)


def explained(error: BaseException) -> str:
    """The traceback, of which only the agent's own lines are shown."""
    told = traceback.TracebackException.from_exception(error)
    only_own(told)
    return shortened("".join(told.format()))


def only_own(told: traceback.TracebackException | None) -> None:
    if told is None:
        return
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename.startswith("<repl")])
    only_own(told.__cause__)
    only_own(told.__context__)
    for each in told.exceptions or ():
        only_own(each)


def shortened(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    left_out = len(text) - MOST_TEXT
    if left_out <= 0:
        return text
    half = MOST_TEXT // 2
    return f"{text[:half]}\n[… {left_out:,} characters left out …]\n{text[-half:]}"


def main() -> NoReturn:
    link = Link(os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY))
    os.register_at_fork(after_in_child=link.close)  # a copy of this process speaks for itself, not for us
    Repl(link, Output(link)).serve()


if __name__ == "__main__":
    main()
