"""From the blocks of an MCP server's answer to text and images for the model, within 25,000 tokens."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from retinue.tools.base import Attachment, ToolData
from retinue.tools.errors import ToolError
from retinue.tools.mcp.constants import CHARS_PER_TOKEN, MAX_BINARY_BYTES, MAX_RESULT_TOKENS
from retinue.tools.mcp.ports import McpBlock
from retinue.tools.text import for_model, one_line, printable

_SUFFIXES = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/plain": ".txt",
}


class Part(ToolData):
    """One block as text. `saved_to` is where binary content was put."""

    text: str
    uri: str = ""
    media_type: str = ""
    saved_to: str | None = None


@dataclass(slots=True)
class Mapped:
    """What became of an answer. `tokens` is about what all of it costs."""

    parts: list[Part] = field(default_factory=list[Part])
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    tokens: int = 0


def mapped(blocks: Iterable[McpBlock], folder: Path, limit: int = MAX_RESULT_TOKENS) -> Mapped:
    """Images are made smaller, and left out when there is no room for them; what else is binary is put into a file."""
    result = Mapped()
    for block in blocks:
        match block.kind:
            case "text":
                part = Part(text=printable(block.text))
            case "image":
                part = _image(block, result, limit)
            case "link":
                part = Part(
                    text=f"[resource {one_line(block.name or block.uri)} at {one_line(block.uri)}]", uri=block.uri
                )
            case "resource" | "audio":
                part = Part(text=printable(block.text), uri=block.uri) if not block.data else _saved(block, folder)
        result.parts.append(part.model_copy(update={"media_type": block.media_type}))
        result.tokens += len(part.text) // CHARS_PER_TOKEN
    return result


def text_of(parts: Iterable[Part]) -> str:
    """What the model reads. A server is a stranger: nothing of it passes for our own words."""
    said: list[str] = []
    for part in parts:
        head = f"[{one_line(part.uri)}]\n" if part.uri and part.text and not part.text.startswith("[") else ""
        said.append(f"{head}{for_model(part.text)}")
    return "\n".join(text for text in said if text)


def _image(block: McpBlock, result: Mapped, limit: int) -> Part:
    from retinue.tools.files.read.images import kind_of, picture

    data = _bytes(block)
    media_type = kind_of(data) if data is not None else None
    if data is None or media_type is None:
        return Part(text="[An image that could not be decoded]")
    try:
        shown = picture(data, media_type).attachment()
    except ToolError as error:
        return Part(text=f"[An image that cannot be shown: {one_line(str(error))}]")
    if result.tokens + shown.tokens > limit:
        return Part(text=f"[An image of {len(data):,} bytes: left out, since a result has {limit:,} tokens at most]")
    result.attachments.append(shown)
    result.tokens += shown.tokens
    return Part(text="[image]")


def _saved(block: McpBlock, folder: Path) -> Part:
    """Named by its content, so that the same thing twice is one file."""
    data = _bytes(block)
    if data is None:
        return Part(text="[Binary content that could not be decoded]", uri=block.uri)
    path = folder / f"mcp-{hashlib.sha256(data).hexdigest()[:16]}{_SUFFIXES.get(block.media_type, '.bin')}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(data)
    except OSError as error:
        return Part(text=f"[{len(data):,} bytes that could not be saved: {error.strerror}]", uri=block.uri)
    kind = one_line(block.media_type) or "binary content"
    return Part(text=f"[{kind} of {len(data):,} bytes, saved to {path}]", uri=block.uri, saved_to=str(path))


def _bytes(block: McpBlock) -> bytes | None:
    if len(block.data) > MAX_BINARY_BYTES * 4 // 3 + 4:
        return None
    try:
        return base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        return None
