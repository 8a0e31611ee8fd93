"""A script behind a Messages API on this machine: what the real client is tested with, and any other client can be."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from retinue.agents.model.breaks import SCRIPT_EXPECTATION, type_of_status
from retinue.agents.model.performance import Refused, Snapped, Timed
from retinue.agents.model.port import BreakKind, ModelRequest
from retinue.agents.model.script import Script
from retinue.agents.model.script_file import load_script
from retinue.agents.model.scripted import ScriptedModel, Sleep, Unscripted
from retinue.agents.model.serve_http import BadHttp, HttpRequest, HttpServer, Reply
from retinue.agents.model.serve_wire import Json, error_body, request_of, sse, whole
from retinue.tools.errors import EnvironmentProblem

LOOPBACK = "127.0.0.1"
_SSE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_STATUS: dict[BreakKind, int] = {"expectation": 400, "not_found": 404, "invalid_request": 400}


class ScriptServer:
    """`base_url` is what a client is given. `deserted` is set when a client left before its answer was whole."""

    def __init__(self, model: ScriptedModel, name: str) -> None:
        self._model = model
        self._name = name
        self._http = HttpServer(self._handle, self._refuse)
        self.base_url = ""
        self.requests = 0

    @property
    def deserted(self) -> asyncio.Event:
        return self._http.deserted

    async def start(self, host: str, port: int) -> None:
        """Raises EnvironmentProblem when the port is taken."""
        try:
            bound = await self._http.start(host, port)
        except OSError as error:
            raise EnvironmentProblem(
                f"cannot listen on {host}:{port}: {error.strerror or error}; take another port, or 0 for a free one"
            ) from None
        shown = f"[{host}]" if ":" in host else host
        self.base_url = f"http://{shown}:{bound}"

    async def close(self) -> None:
        await self._http.close()

    async def _handle(self, request: HttpRequest, reply: Reply) -> None:
        self.requests += 1
        match request.method, request.path.rstrip("/"):
            case "POST", "/v1/messages":
                await self._answer(request, reply)
            case "POST", "/v1/messages/count_tokens":
                await self._count(request, reply)
            case "GET", "/v1/models":
                await self._json(reply, 200, self._models())
            case _, "/v1/messages" | "/v1/messages/count_tokens" | "/v1/models":
                await self._fail(reply, 405, f"{request.method} is not for {request.path}", "invalid_request_error")
            case _:
                await self._fail(reply, 404, f"nothing at {request.path}")

    async def _answer(self, http: HttpRequest, reply: Reply) -> None:
        try:
            request, streamed = request_of(http.body)
            pieces = self._model.pieces(request)
        except ValueError as error:
            await self._fail(reply, 400, str(error))
            return
        except Unscripted as error:
            kind = SCRIPT_EXPECTATION if error.reason == "expectation" else None
            await self._fail(reply, _STATUS.get(error.reason, 400), error.message, kind)
            return
        first = pieces[0].piece
        if isinstance(first, Refused):
            wish = {} if first.retry_after_s is None else {"retry-after": f"{first.retry_after_s:g}"}
            await self._fail(reply, first.status, f"the script refuses with status {first.status}", headers=wish)
        elif streamed:
            await self._stream(request, pieces, reply)
        else:
            await self._whole(request, pieces, reply)

    async def _stream(self, request: ModelRequest, pieces: tuple[Timed, ...], reply: Reply) -> None:
        await reply.start(_SSE)
        for timed in pieces:
            await self._model.wait(timed)
            if isinstance(timed.piece, Snapped):
                await self._snap(timed.piece, reply)
                return
            await reply.chunk(sse(timed.piece, request.model))
        await reply.end()

    async def _snap(self, snapped: Snapped, reply: Reply) -> None:
        match snapped.how:
            case "close":
                await reply.end()
            case "error":
                body = error_body("overloaded_error", "Overloaded (script)")
                await reply.chunk(f"event: error\ndata: {json.dumps(body)}\n\n".encode())
                await reply.end()
            case "stall":
                await asyncio.Event().wait()  # until the client leaves, or the server closes
            case _:
                return  # the connection closes without the end of the stream: lost

    async def _whole(self, request: ModelRequest, pieces: tuple[Timed, ...], reply: Reply) -> None:
        for timed in pieces:
            await self._model.wait(timed)
        last = pieces[-1].piece
        if not isinstance(last, Snapped):
            await self._json(reply, 200, whole((timed.piece for timed in pieces), request.model))
        elif last.how == "error":
            await self._fail(reply, 529, "Overloaded (script)")
        elif last.how == "stall":
            await asyncio.Event().wait()

    async def _count(self, http: HttpRequest, reply: Reply) -> None:
        try:
            request, _ = request_of(http.body)
        except ValueError as error:
            await self._fail(reply, 400, str(error))
            return
        await self._json(reply, 200, {"input_tokens": self._model.estimate(request)})

    def _models(self) -> Json:
        model: Json = {
            "type": "model",
            "id": self._name,
            "display_name": f"retinue script {self._name}",
            "created_at": "1970-01-01T00:00:00Z",
        }
        return {"data": [model], "has_more": False, "first_id": self._name, "last_id": self._name}

    async def _refuse(self, error: BadHttp, reply: Reply) -> None:
        await self._fail(reply, error.status, error.message)

    async def _fail(
        self, reply: Reply, status: int, message: str, kind: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        await self._json(reply, status, error_body(kind or type_of_status(status), message), headers)

    async def _json(self, reply: Reply, status: int, body: JsonValue, headers: dict[str, str] | None = None) -> None:
        sent = {"content-type": "application/json", "request-id": f"req_{self.requests}", **(headers or {})}
        await reply.send(status, json.dumps(body).encode(), sent)


@asynccontextmanager
async def serve_script(
    script: Script, *, port: int = 0, host: str = LOOPBACK, name: str = "script", sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[ScriptServer]:
    """A server for the time of the block; port 0 takes a free one. Raises EnvironmentProblem."""
    server = ScriptServer(ScriptedModel(script, name, sleep), name)
    await server.start(host, port)
    try:
        yield server
    finally:
        await server.close()


def main(path: Path, say: Callable[[str], None], *, port: int = 0, host: str = LOOPBACK) -> None:
    """Serve the script until SIGINT or SIGTERM. Raises SpecError or EnvironmentProblem before it listens."""
    asyncio.run(_until_stopped(load_script(path), path.name, say, port, host))


async def _until_stopped(script: Script, name: str, say: Callable[[str], None], port: int, host: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve_script(script, port=port, host=host, name=name) as server:
        say(f"serving {name} at {server.base_url} (base_url of a Messages API; Ctrl-C ends it)")
        await stop.wait()
