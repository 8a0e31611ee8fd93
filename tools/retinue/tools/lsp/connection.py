"""Requests and answers with one server over a pair of streams: deadlines, cancellation, questions both ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.lsp.wire import Frames, Message, ProtocolBroken, encoded
from retinue.tools.text import one_line

METHOD_NOT_FOUND = -32601
CONTENT_MODIFIED = -32801
_CHUNK = 64 * 1024
_DRAIN_S = 30.0


class ServerGone(ToolError):
    """The server's output ended, or it no longer speaks the protocol."""


class ServerRefused(ToolError):
    """The server answered with an error."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class Connection:
    """`answer` gives the results of the server's own questions, LookupError for what is not known; `heard` takes its
    news. Both are called in the order in which the messages came. `ended` is called once, when there will be no more.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answer: Callable[[str, JsonValue], JsonValue],
        heard: Callable[[str, JsonValue], None],
        ended: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._heard = heard
        self._ended = ended
        self._waiting: dict[int, asyncio.Future[JsonValue]] = {}
        self._last_id = 0
        self.why_closed = ""
        self.closed = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    async def request(self, method: str, params: JsonValue, timeout_s: float) -> JsonValue:
        """ToolError after the deadline, ServerGone and ServerRefused as they say. Cancelled, it tells the server so."""
        self._last_id += 1
        number = self._last_id
        future: asyncio.Future[JsonValue] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            async with asyncio.timeout(timeout_s):
                await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
                return await future
        except TimeoutError:
            self._call_off(number)
            raise ToolError(f"The language server did not answer {method} within {timeout_s:g} s.") from None
        except asyncio.CancelledError:
            self._call_off(number)
            raise
        finally:
            del self._waiting[number]

    async def notify(self, method: str, params: JsonValue) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def close(self) -> None:
        self._close("it was closed")
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening

    async def _send(self, message: Message) -> None:
        self._put(message)
        try:
            async with asyncio.timeout(_DRAIN_S):
                await self._writer.drain()
        except OSError as error:
            self._close(error.strerror or "it does not take its input")
            raise ServerGone(self.why_closed) from None

    def _put(self, message: Message) -> None:
        if self.closed.is_set():
            raise ServerGone(self.why_closed)
        self._writer.write(encoded(message))

    def _call_off(self, number: int) -> None:
        with suppress(ServerGone):
            self._put({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})

    def _close(self, why: str) -> None:
        if self.closed.is_set():
            return
        self.why_closed = why
        self.closed.set()
        self._writer.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ServerGone(why))
        self._ended()

    async def _listen(self) -> None:
        frames = Frames()
        why = "its output ended"
        try:
            while data := await self._reader.read(_CHUNK):
                for message in frames.feed(data):
                    self._take(message)
        except ProtocolBroken as error:
            why = f"it sent {error}"
        except OSError as error:
            why = error.strerror or "its output broke off"
        finally:
            self._close(why)

    def _take(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is None:
                self._heard(method, message.get("params"))
            else:
                self._reply(method, number, message.get("params"))
            return
        future = self._waiting.get(number) if isinstance(number, int) else None
        if future is None or future.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            text = one_line(str(error.get("message", "")), 500)
            future.set_exception(ServerRefused(text, code if isinstance(code, int) else 0))
        else:
            future.set_result(message.get("result"))

    def _reply(self, method: str, number: JsonValue, params: JsonValue) -> None:
        message: Message = {"jsonrpc": "2.0", "id": number}
        try:
            message["result"] = self._answer(method, params)
        except LookupError:
            message["error"] = {"code": METHOD_NOT_FOUND, "message": f"{one_line(method, 80)} is not known here"}
        with suppress(ServerGone):
            self._put(message)
