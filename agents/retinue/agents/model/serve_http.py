"""As much of an HTTP/1.1 server as a scripted model needs: one request a connection, which can also end wrongly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

_MAX_HEAD = 64 * 1024
_MAX_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Header names are in lower case; `path` is without the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class BadHttp(Exception):
    """The request cannot be read; `status` is what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message


class Reply:
    """The one answer of a connection: whole, or as a stream of chunks."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, {"content-length": str(len(body)), **headers})
        self._writer.write(body)
        await self._writer.drain()

    async def start(self, headers: Mapping[str, str]) -> None:
        self._head(200, {"transfer-encoding": "chunked", **headers})
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """The stream was meant to end here. A connection that closes without this was lost."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Overloaded"
        lines = [f"HTTP/1.1 {status} {phrase}", "connection: close", *(f"{k}: {v}" for k, v in headers.items())]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))


Handler = Callable[[HttpRequest, Reply], Awaitable[None]]
Refusal = Callable[[BadHttp, Reply], Awaitable[None]]


class HttpServer:
    """Calls `handle` for each request, and cancels it when the client goes away before the answer is whole."""

    def __init__(self, handle: Handler, refuse: Refusal) -> None:
        self._handle = handle
        self._refuse = refuse
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.deserted = asyncio.Event()

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which is a free one when 0 was asked for."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=_MAX_HEAD)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Accept nothing more, and end what is running."""
        if self._server is None:
            return
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except ConnectionError:
            self.deserted.set()
        except asyncio.CancelledError:
            pass  # the server closes; what asyncio would do with the cancellation is log it
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = Reply(writer)
        try:
            request = await _read(reader)
        except BadHttp as error:
            await self._refuse(error, reply)
            return
        if request is None:
            return
        answering = asyncio.ensure_future(self._handle(request, reply))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self.deserted.set()
        finally:
            for task in (answering, leaving):
                task.cancel()
            ended = await asyncio.gather(answering, leaving, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    """None when the client closed without asking. Raises BadHttp."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise BadHttp(431, "the header is too long") from None
    method, path, headers = _parsed(head.decode("latin-1"))
    if "transfer-encoding" in headers:
        raise BadHttp(411, "send the body with a content-length")
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise BadHttp(400, "content-length is no number")
    if int(length) > _MAX_BODY:
        raise BadHttp(413, f"the body is longer than {_MAX_BODY} bytes")
    try:
        body = await reader.readexactly(int(length))
    except asyncio.IncompleteReadError:
        return None
    return HttpRequest(method, path, headers, body)


def _parsed(head: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadHttp(400, "not an HTTP/1.1 request")
    pairs = (line.partition(":") for line in lines if line)
    return words[0], words[1].partition("?")[0], {name.strip().lower(): value.strip() for name, _, value in pairs}
