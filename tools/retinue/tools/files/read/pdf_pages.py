"""Chosen pages of a PDF, in a process of their own: a file that is made to hurt ends this process and nothing else.

    python -m retinue.tools.files.read.pdf_pages FIRST LAST MOST_BYTES MOST_PAGES < FILE

Writes one line of JSON, then the PDF of the pages. LAST 0 stands for all pages, unless they
are more than MOST_PAGES. Never writes a file.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pypdf import PdfReader

MEMORY_BYTES = 2 * 1024 * 1024 * 1024
CPU_SECONDS = 40
_PAGE_CHARS = 20_000


class Unreadable(Exception):
    """Why these pages cannot be had; the text is for the model."""


def main(arguments: list[str], file: BinaryIO, out: BinaryIO) -> None:
    first, last, most, most_pages = (int(each) for each in arguments)
    try:
        header, body = pages(file.read(), first, last, most, most_pages)
    except Unreadable as error:
        header, body = {"error": str(error)}, b""
    out.write(json.dumps(header).encode() + b"\n" + body)
    out.flush()


def pages(data: bytes, first: int, last: int, most: int, most_pages: int) -> tuple[dict[str, object], bytes]:
    """The header has `total`; where these are not too many also `first` and `last` of the PDF that follows, or `text`
    where that would be too large.

    Raises Unreadable.
    """
    reader = _opened(data)
    total = len(reader.pages)
    until = min(last or total, total)
    header: dict[str, object] = {"total": total, "first": first, "last": until}
    if total == 0:
        raise Unreadable("The PDF has no pages.")
    if last == 0 and total > most_pages:
        return {"total": total}, b""
    if first > total:
        raise Unreadable(f"The PDF has only {total} pages.")
    if first == 1 and until == total and len(data) <= most and not reader.is_encrypted:
        return header, data
    body = _only(reader, first, until)
    if len(body) <= most:
        return header, body
    if first < until:
        raise Unreadable(f"Pages {first} to {until} are {len(body):,} bytes, more than {most:,}: ask for fewer pages.")
    return {**header, "text": reader.pages[first - 1].extract_text()[:_PAGE_CHARS]}, b""


def _opened(data: bytes) -> PdfReader:
    from pypdf import PasswordType, PdfReader

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise Unreadable("The PDF is encrypted and needs a password.")
        len(reader.pages)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable(f"The PDF is broken, or of a kind that cannot be read ({type(error).__name__}).") from None
    return reader


def _only(reader: PdfReader, first: int, last: int) -> bytes:
    from pypdf import PdfWriter

    out = io.BytesIO()
    try:
        writer = PdfWriter()
        for index in range(first - 1, last):
            writer.add_page(reader.pages[index])
        writer.write(out)
    except Exception as error:
        raise Unreadable(f"Pages {first} to {last} cannot be taken out of the PDF ({type(error).__name__}).") from None
    return out.getvalue()


def limit_oneself() -> None:
    """No files, and no more memory and time than an honest document needs."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):  # not every system knows all of them
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    limit_oneself()
    main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer)
