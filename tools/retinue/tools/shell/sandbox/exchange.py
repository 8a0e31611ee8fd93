"""One request to the proxy: a tunnel (CONNECT), or one plain HTTP request and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import h11

from retinue.tools.shell.sandbox.hosts import Place, Refused, absolute, authority, place

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_CHUNK = 65_536
_OF_ONE_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"upgrade", b"host", b"expect")
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and counts. `idle_s` is how long neither side may say anything."""

    connections: int = 64
    head_bytes: int = 32_768
    head_s: float = 10.0
    dial_s: float = 20.0
    idle_s: float = 300.0


async def serve(
    client: Streams, hosts: Sequence[str], dial: Callable[[Place], Awaitable[Streams]], limits: Limits
) -> None:
    """Never raises; both connections are closed when it ends."""
    reader, writer = client
    ours = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
    server: Streams | None = None
    try:
        async with asyncio.timeout(limits.head_s):
            request = await _request(ours, reader)
        where, path = _where(request, hosts)
        async with asyncio.timeout(limits.dial_s):
            server = await dial(where)
        if request.method == b"CONNECT":
            await _tunnel(ours, client, server, limits)
        else:
            await _relay(ours, request, path, where, client, server, limits)
    except Refused as refusal:
        await _refuse(ours, writer, 403, str(refusal))
    except TimeoutError:
        await _refuse(ours, writer, 504, "it took too long")
    except (h11.ProtocolError, OSError, EOFError):
        await _refuse(ours, writer, 502, "what was said is not HTTP, or the host went away")
    finally:
        for end in (writer, *([server[1]] if server is not None else [])):
            end.close()
            with suppress(OSError):
                await end.wait_closed()


async def _request(ours: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    event = await _event(ours, reader)
    if not isinstance(event, h11.Request):
        raise EOFError
    return event


async def _event(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await reader.read(_CHUNK))


def _where(request: h11.Request, hosts: Sequence[str]) -> tuple[Place, str]:
    target = request.target.decode("ascii")
    if request.method == b"CONNECT":
        return place(*authority(target), hosts), ""
    host, port, path = absolute(target)
    return place(host, port, hosts), path


class _Heard:
    """When either side last said something."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._last = asyncio.get_running_loop().time()

    def left(self) -> float:
        return self._last + self._idle_s - asyncio.get_running_loop().time()

    def now(self) -> None:
        self._last = asyncio.get_running_loop().time()


async def _tunnel(ours: h11.Connection, client: Streams, server: Streams, limits: Limits) -> None:
    """Bytes both ways until both sides have ended, or neither has said anything for long."""
    await _event(ours, client[0])
    client[1].write(ours.send(h11.Response(status_code=200, headers=[])) or b"")
    server[1].write(ours.trailing_data[0])
    heard = _Heard(limits.idle_s)
    ways = [asyncio.ensure_future(_pump(*way, heard)) for way in ((client[0], server[1]), (server[0], client[1]))]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: _Heard) -> None:
    while data := await _read(reader, heard):
        heard.now()
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _read(reader: asyncio.StreamReader, heard: _Heard) -> bytes:
    """What comes next, however long it takes, as long as anything comes from either side."""
    while True:
        try:
            async with asyncio.timeout(heard.left()):
                return await reader.read(_CHUNK)
        except TimeoutError:
            if heard.left() <= 0:
                raise


async def _relay(
    ours: h11.Connection,
    request: h11.Request,
    path: str,
    where: Place,
    client: Streams,
    server: Streams,
    limits: Limits,
) -> None:
    """One request and its answer, taken apart and put together again: nothing can be slipped in between."""
    theirs = h11.Connection(h11.CLIENT)
    named = where.host if where.port == 80 else f"{where.host}:{where.port}"
    headers = [*_passed_on(request.headers), (b"host", named.encode()), (b"connection", b"close")]
    server[1].write(theirs.send(h11.Request(method=request.method, target=path, headers=headers)) or b"")
    if ours.they_are_waiting_for_100_continue:
        client[1].write(ours.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
    await _pass_on(ours, client[0], theirs, server[1], limits)
    await _pass_on(theirs, server[0], ours, client[1], limits)


async def _pass_on(
    source: h11.Connection,
    reader: asyncio.StreamReader,
    target: h11.Connection,
    writer: asyncio.StreamWriter,
    limits: Limits,
) -> None:
    """What follows of one message, to its end."""
    while True:
        async with asyncio.timeout(limits.idle_s):
            event = await _event(source, reader)
            match event:
                case h11.InformationalResponse():
                    continue
                case h11.Response():
                    headers = [*_passed_on(event.headers), (b"connection", b"close")]
                    said = target.send(
                        h11.Response(status_code=event.status_code, reason=event.reason, headers=headers)
                    )
                case h11.Data() | h11.EndOfMessage():
                    said = target.send(event)
                case _:
                    raise EOFError
            writer.write(said or b"")
            await writer.drain()
        if isinstance(event, h11.EndOfMessage):
            return


def _passed_on(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without what is said to the next hop only."""
    listed = list(headers)
    named = {word.strip().lower() for name, value in listed if name == b"connection" for word in value.split(b",")}
    return [(name, value) for name, value in listed if name not in _OF_ONE_HOP and name not in named]


async def _refuse(ours: h11.Connection, writer: asyncio.StreamWriter, status: int, why: str) -> None:
    """Say why, when there is still an answer to be given."""
    if ours.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
        return
    body = f"retinue's sandbox: {why}.\n".encode()
    headers = [("content-type", "text/plain"), ("content-length", str(len(body))), ("connection", "close")]
    events = (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage())
    with suppress(OSError, h11.ProtocolError):
        writer.write(b"".join(ours.send(event) or b"" for event in events))
        await writer.drain()
