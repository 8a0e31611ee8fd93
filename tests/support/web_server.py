"""A small HTTP server in the test's own loop, which sends exactly the bytes that a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Handler = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    sni: str | None


@dataclass
class WebServer:
    """`routes` maps a path without its query to a whole answer, or to a function that writes one."""

    port: int = 0
    routes: dict[str, bytes | Handler] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    sni: str | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await self._read(reader)
            self.asked.append(asked)
            route = self.routes.get(asked.path.partition("?")[0], answer(b"nothing here", status="404 Not Found"))
            if isinstance(route, bytes):
                writer.write(route)
                await writer.drain()
            else:
                await route(asked, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Asked:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Asked(method, path, headers, body, self.sni)


def answer(
    body: bytes, content_type: str = "text/plain", *, status: str = "200 OK", headers: dict[str, str] | None = None
) -> bytes:
    fields = {"Content-Type": content_type, "Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def redirect(to: str, status: str = "302 Found") -> bytes:
    return answer(b"", status=status, headers={"Location": to})


@asynccontextmanager
async def web_server(tls: ssl.SSLContext | None = None) -> AsyncGenerator[WebServer]:
    served = WebServer()
    if tls is not None:

        def note(_socket: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            served.sni = name

        tls.sni_callback = note  # pyright: ignore[reportAttributeAccessIssue]
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        await server.wait_closed()
