"""PDF files by pages. All that looks inside of one runs in a process of its own, see `pdf_pages`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from retinue.tools.base import Attachment
from retinue.tools.errors import ToolError
from retinue.tools.files.read.constants import (
    PDF_BYTES,
    PDF_MOST_PAGES,
    PDF_PAGE_TOKENS,
    PDF_SECONDS,
    PDF_WHOLE_PAGES,
)

_RANGE = re.compile(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?\Z")


class _Header(BaseModel):
    model_config = ConfigDict(frozen=True)

    total: int = 0
    first: int = 1
    last: int = 0
    text: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """`data` is a PDF of these pages alone; empty where only their `text` is small enough."""

    total: int
    first: int
    last: int
    data: bytes
    text: str | None = None

    def attachment(self) -> Attachment | None:
        tokens = PDF_PAGE_TOKENS * (self.last - self.first + 1)
        return Attachment("application/pdf", self.data, tokens) if self.data else None


def page_range(text: str) -> tuple[int, int]:
    """`"3"` and `"1-5"`, from 1. Pure; ToolError for what is no range, or too long for one call."""
    match = _RANGE.match(text)
    first = int(match[1]) if match else 0
    last = int(match[2] or match[1]) if match else 0
    if not 1 <= first <= last:
        raise ToolError(f"{text!r} is no range of pages: write one like 3 or 1-5.")
    if last - first >= PDF_MOST_PAGES:
        raise ToolError(f"{text!r} is {last - first + 1} pages; one call shows at most {PDF_MOST_PAGES}.")
    return first, last


async def read_pages(data: bytes, wanted: tuple[int, int] | None) -> Pages:
    """All pages where none are named. ToolError when there are too many for that, or the file cannot be read."""
    first, last = wanted or (1, 0)
    header, body = await _taken_apart(data, first, last)
    if header.error:
        raise ToolError(header.error)
    if wanted is None and header.total > PDF_WHOLE_PAGES:
        raise ToolError(
            f"The PDF has {header.total} pages, too many to show at once. "
            f'Name up to {PDF_MOST_PAGES} of them with `pages`, such as "1-5".'
        )
    return Pages(header.total, header.first, header.last, body, header.text)


async def _taken_apart(data: bytes, first: int, last: int) -> tuple[_Header, bytes]:
    import asyncio
    import os
    import sys
    from asyncio.subprocess import DEVNULL, PIPE

    arguments = [str(each) for each in (first, last, PDF_BYTES, PDF_WHOLE_PAGES)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        f"{__package__}.pdf_pages",
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd="/",
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        async with asyncio.timeout(PDF_SECONDS):
            output, _ = await process.communicate(data)
    except TimeoutError:
        raise ToolError(f"The PDF took longer than {PDF_SECONDS:.0f} seconds and was given up.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    head, _, body = output.partition(b"\n")
    if process.returncode != 0 or not head:
        raise ToolError("The PDF cannot be read: taking it apart needs too much time or memory, or it is broken.")
    return _Header.model_validate_json(head), body
