"""How messages of the protocol are put on a stream of bytes and taken from it. Pure."""

from __future__ import annotations

import json
from typing import cast

from pydantic import JsonValue

from retinue.tools.errors import ToolError

Message = dict[str, JsonValue]

MAX_HEADER_BYTES = 8 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
_END = b"\r\n\r\n"


class ProtocolBroken(ToolError):
    """What came is no message; nothing behind it can be understood."""


def encoded(message: Message) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Frames:
    """Messages from bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[Message]:
        self._held += data
        found: list[Message] = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> Message | None:
        if self._length is None:
            end = self._held.find(_END)
            if end < 0:
                if len(self._held) > MAX_HEADER_BYTES:
                    raise ProtocolBroken("a header without an end")
                return None
            self._length = _length_in(bytes(self._held[:end]))
            del self._held[: end + len(_END)]
        if len(self._held) < self._length:
            return None
        body = bytes(self._held[: self._length])
        del self._held[: self._length]
        self._length = None
        return _message_in(body)


def _length_in(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        text = value.strip()
        if name.strip().lower() == b"content-length" and text.isdigit() and len(text) < 12:
            if int(text) > MAX_BODY_BYTES:
                raise ProtocolBroken(f"a message of more than {MAX_BODY_BYTES:,} bytes")
            return int(text)
    raise ProtocolBroken("a header without a length")


def _message_in(body: bytes) -> Message:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ProtocolBroken("a message that is no JSON") from None
    if not isinstance(found, dict):
        raise ProtocolBroken("a message that is no object")
    return cast("Message", found)
