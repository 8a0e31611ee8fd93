"""The body of an answer, read in pieces and never larger than asked for, whatever its compression makes of it."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Protocol

from retinue.tools.errors import ToolError

_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
ACCEPTED = "gzip, deflate"


class _Engine(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


class TooLarge(ToolError):
    """More bytes than are taken."""


class Inflater:
    """Undoes one content encoding. At most `limit` bytes come out in all; the next one is TooLarge."""

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolError(f"The server encoded its answer as {name[:40]!r}, which was not asked for.")
        self._limit = limit
        self._room = limit
        self._name = "gzip" if name == "x-gzip" else name
        self._engine: _Engine | None = None

    def feed(self, data: bytes) -> bytes:
        if self._name in ("", "identity"):
            return self._taken(data)
        try:
            return self._inflate(data)
        except zlib.error:
            raise ToolError("The server's compressed answer is damaged.") from None

    def _inflate(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        while data:
            engine = self._engine = self._engine or self._started(data)
            parts.append(self._taken(engine.decompress(data, self._room + 1)))
            if not engine.eof:
                break
            data, self._engine = engine.unused_data, None
            if self._name == "deflate":
                break
        return b"".join(parts)

    def _started(self, data: bytes) -> _Engine:
        """`deflate` comes with and without its header; the first byte tells."""
        if self._name == "gzip":
            return zlib.decompressobj(_GZIP)
        return zlib.decompressobj(_ZLIB if data[0] & 0x0F == 8 else _RAW)

    def _taken(self, data: bytes) -> bytes:
        self._room -= len(data)
        if self._room < 0:
            raise TooLarge(f"The answer is larger than {self._limit:,} bytes.")
        return data


async def read_body(pieces: AsyncIterator[bytes], encoding: str, limit: int) -> bytes:
    inflater = Inflater(encoding, limit)
    body = bytearray()
    async for piece in pieces:
        body += inflater.feed(piece)
    return bytes(body)
