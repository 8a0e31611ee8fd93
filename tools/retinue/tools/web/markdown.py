"""The text of a page, whatever it was sent as."""

from __future__ import annotations

import asyncio
import codecs
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem, ToolError

MAX_HTML_BYTES = 2 * 1024 * 1024
CONVERT_S = 25.0
_PROGRAM = str(Path(__file__).with_name("convert.py"))
_HTML = frozenset(("text/html", "application/xhtml+xml"))
_TEXTUAL = ("json", "xml", "yaml", "toml", "javascript", "ecmascript", "typescript", "x-sh", "sql", "graphql", "csv")


def is_html(content_type: str, body: bytes) -> bool:
    if content_type in _HTML:
        return True
    start = body[:512].lstrip().lower()
    return not content_type and start.startswith((b"<!doctype html", b"<html"))


def is_text(content_type: str, body: bytes) -> bool:
    """By what the server calls it; where it calls it nothing, by whether it reads as text."""
    if content_type in ("", "application/octet-stream"):
        return b"\0" not in body[:4_096] and _decodes(body[:4_096])
    return content_type.startswith("text/") or any(word in content_type.partition("/")[2] for word in _TEXTUAL)


def decoded(body: bytes, charset: str | None) -> str:
    try:
        name = codecs.lookup(charset or "utf-8").name
        return body.decode(name, "replace")
    except (LookupError, ValueError, TypeError):
        return body.decode("utf-8", "replace")


async def markdown_of(html: bytes, url: str, charset: str | None, *, timeout_s: float = CONVERT_S) -> str:
    """ToolError for a page that takes too long, or too much memory, to be made text."""
    argv = (sys.executable, "-I", "-B", _PROGRAM, url, _known(charset))
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/", start_new_session=True
        )
    except OSError as error:
        raise EnvironmentProblem(f"No process could be started to read a page: {error.strerror}.") from None
    try:
        async with asyncio.timeout(timeout_s):
            text, _ = await process.communicate(html[:MAX_HTML_BYTES])
    except TimeoutError:
        raise ToolError(f"The page could not be made text within {timeout_s:g} s.") from None
    finally:
        await _ended(process)
    if process.returncode != 0:
        raise ToolError("The page could not be made text: it takes too much time or memory.")
    return text.decode("utf-8", "replace")


async def _ended(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _known(charset: str | None) -> str:
    try:
        return codecs.lookup(charset).name if charset else ""
    except (LookupError, ValueError):
        return ""


def _decodes(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
