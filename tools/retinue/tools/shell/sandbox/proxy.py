"""The proxy of a sandbox with a list of hosts: outside of it, on a Unix socket, one for each process with commands.

Inside, a forwarder leads a loopback port to the socket. The proxy resolves names itself and connects to the address
that it has checked, so that what a name means to whom does not matter. It is no judge of what is said to an allowed
host.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.shell.sandbox.exchange import Limits, Streams, serve
from retinue.tools.shell.sandbox.hosts import Place, Refused, public

Dial = Callable[[Place], Awaitable[Streams]]


class ProxyServer:
    """`async with ProxyServer(hosts, socket)`: answers from entering to leaving; leaving ends what is under way."""

    def __init__(
        self, hosts: Sequence[str], socket_path: Path, *, dial: Dial | None = None, limits: Limits | None = None
    ) -> None:
        self._hosts = tuple(hosts)
        self._path = socket_path
        self._dial = dial or dial_public
        self._limits = limits or Limits()
        self._server: asyncio.Server | None = None
        self._exchanges: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_unix_server(self._accept, sock=listening(self._path))
        except OSError as error:
            raise EnvironmentProblem(f"The sandbox's proxy cannot listen on {self._path}: {error.strerror}.") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for exchange in self._exchanges:
            exchange.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)
        self._path.unlink(missing_ok=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._exchanges) >= self._limits.connections:
            writer.transport.abort()
            return
        exchange = asyncio.ensure_future(serve((reader, writer), self._hosts, self._dial, self._limits))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)


def listening(path: Path) -> socket.socket:
    """A socket at `path`, named through a descriptor of its folder: the whole path may be too long for an address."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    found = socket.socket(socket.AF_UNIX)
    try:
        through = Path(f"/proc/self/fd/{folder}")
        found.bind(str(through / path.name) if through.exists() else str(path))
        found.listen()
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    finally:
        os.close(folder)
    return found


async def dial_public(where: Place) -> Streams:
    """A connection to the first address of a host that answers; only addresses of the open internet are tried."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)
    except OSError:
        raise Refused(f"{where.host} is not known") from None
    addresses = list(dict.fromkeys(str(address[4][0]) for address in found if public(str(address[4][0]))))
    if not addresses:
        raise Refused(f"{where.host} is no host of the open internet")
    for address in addresses:
        with suppress(OSError):
            return await asyncio.open_connection(address, where.port)
    raise Refused(f"{where.host} does not answer")
