# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Messages between actors: pydantic models as msgpack bytes, and calls with a deadline of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgpack
from pydantic import BaseModel
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from retinue.orchestrator.runtime.port import Unreachable

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

CALL_S = 20.0
"""Deadline of an ordinary call between actors. Long waits are many short calls."""


MOST_WORDS = 4_000
"""Characters of an error of another process that are passed on."""


def pack(message: BaseModel) -> bytes:
    """Lone surrogates survive: tool output may hold them."""
    packed = msgpack.packb(message.model_dump(mode="python"), unicode_errors="surrogatepass")
    assert isinstance(packed, bytes)
    return packed


def unpack(kind: type[M], data: bytes) -> M:
    return kind.model_validate(msgpack.unpackb(data, unicode_errors="surrogatepass"))


async def ask(call: Awaitable[T], deadline_s: float = CALL_S) -> T:
    """Await one remote call. Whatever keeps the answer away becomes `Unreachable`: the outcome is unknown."""
    try:
        async with asyncio.timeout(deadline_s):
            return await call
    except TimeoutError as error:
        raise Unreachable(f"no answer within {deadline_s:.0f} s") from error
    except (RayActorError, GetTimeoutError) as error:
        raise Unreachable(f"the process is gone or cannot be reached: {type(error).__name__}") from error
    except RayTaskError as error:
        raise Unreachable(str(error.cause).strip()[:MOST_WORDS] or "the call failed") from error


def cause_of(error: RayTaskError) -> str:
    """What went wrong in the other process, in one line."""
    lines = str(error.cause).strip().splitlines()
    return lines[0] if lines else type(error.cause).__name__
