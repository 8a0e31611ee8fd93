"""Which images and documents of a conversation go with a request, and their bytes."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable

from retinue.agents.model.messages import Message, ToolResultBlock
from retinue.tools.execution.calls import Media

MOST_BYTES = 20 * 1024 * 1024
MOST_MEDIA = 90
"""What one request carries at most: servers refuse more than 32 MB of JSON, and more than 100 images."""


def chosen(messages: Iterable[Message], most_bytes: int = MOST_BYTES, most: int = MOST_MEDIA) -> tuple[Media, ...]:
    """The newest that fit. Pure.

    When there are too many, the older half goes at once: each one that goes changes what a cache holds of the
    conversation, so that it should happen seldom. What is chosen for a longer conversation depends on nothing else.
    """
    kept: list[Media] = []
    held = 0
    for medium in _media(messages):
        kept.append(medium)
        held += medium.size
        if held > most_bytes or len(kept) > most:
            while len(kept) > 1 and (held > most_bytes // 2 or len(kept) > most // 2):
                held -= kept.pop(0).size
    return tuple(kept)


def load(media: Iterable[Media]) -> dict[str, str]:
    """By digest, in base64. What is missing, or is not what it was, is left out."""
    loaded: dict[str, str] = {}
    for medium in media:
        if medium.digest not in loaded and (data := _bytes_of(medium)) is not None:
            loaded[medium.digest] = base64.b64encode(data).decode("ascii")
    return loaded


def _media(messages: Iterable[Message]) -> Iterable[Media]:
    for message in messages:
        for block in message.content:
            if isinstance(block, ToolResultBlock) and not block.is_error:
                yield from block.media


def _bytes_of(medium: Media) -> bytes | None:
    try:
        descriptor = os.open(medium.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read(medium.size + 1)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == medium.digest else None
