"""What crosses between the agent and the process that runs code: a length of four bytes, then so much JSON.

The agent trusts nothing that comes out: what is no frame, too long or unknown ends the process. A frame asks for
nothing but a call by name and input; whether it may run is not the process's to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from retinue.tools.errors import ToolError

LENGTH_BYTES = 4
MOST_BYTES = 4 * 1024 * 1024


class BadFrame(ToolError):
    """The process said something that it never says."""


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Ready(_Frame):
    kind: Literal["ready"]


class Printed(_Frame):
    kind: Literal["out"]
    text: str


class Asked(_Frame):
    """The code calls a tool. `id` is the process's own, for the answer."""

    kind: Literal["call"]
    id: int
    name: str
    input: dict[str, JsonValue]


class GivenUp(_Frame):
    """The code does not wait for that call any more."""

    kind: Literal["cancel"]
    id: int


class Done(_Frame):
    """The run is over. `value` is the last expression as text; `error` a traceback."""

    kind: Literal["done"]
    id: int
    value: str | None
    error: str | None


Frame = Annotated[Ready | Printed | Asked | GivenUp | Done, Field(discriminator="kind")]
_FRAME: TypeAdapter[Frame] = TypeAdapter(Frame)


def encode(message: Mapping[str, JsonValue]) -> bytes:
    body = json.dumps(message).encode()
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Decoder:
    """Bytes in pieces of any size in, whole frames out."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> Frame | None:
        """The next whole frame; None: more bytes are needed. BadFrame for what is none."""
        if len(self._held) < LENGTH_BYTES:
            return None
        size = int.from_bytes(self._held[:LENGTH_BYTES], "big")
        if size > self._most:
            raise BadFrame(f"The Python process sent a message of {size:,} bytes; {self._most:,} are possible.")
        end = LENGTH_BYTES + size
        if len(self._held) < end:
            return None
        body = bytes(self._held[LENGTH_BYTES:end])
        del self._held[:end]
        try:
            return _FRAME.validate_json(body)
        except (ValidationError, ValueError, RecursionError):
            raise BadFrame("The Python process sent a message that means nothing.") from None
