"""A server that gives one answer to everything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from retinue.agents.model.serve_http import BadHttp, HttpRequest, HttpServer, Reply


@asynccontextmanager
async def a_server(status: int, body: bytes, headers: dict[str, str]) -> AsyncIterator[tuple[str, list[HttpRequest]]]:
    """Where it is, and what it was asked."""
    asked: list[HttpRequest] = []

    async def handle(request: HttpRequest, reply: Reply) -> None:
        asked.append(request)
        await reply.send(status, body, headers)

    async def refuse(error: BadHttp, reply: Reply) -> None:
        raise AssertionError(error)

    server = HttpServer(handle, refuse)
    port = await server.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}", asked
    finally:
        await server.close()
