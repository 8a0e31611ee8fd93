"""Bytes to text and back, so that what is not touched stays as it was, to the byte."""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from dataclasses import dataclass
from itertools import accumulate

from retinue.tools.errors import ToolError

_PROBE = 64 * 1024
_ENDING_PROBE = 4_096
_CONTROL = bytes(set(range(0x20)) - {0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B})
_REAL_MULTIBYTE = re.compile("[^\x00-\x7f\udc80-\udcff]")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text with its line endings as they are. `bom` + `encode(raw)` are the file's bytes again."""

    raw: str
    encoding: str
    bom: bytes = b""

    @property
    def normal(self) -> str:
        """As the model sees it: lines end with a newline alone."""
        return self.raw.replace("\r\n", "\n")

    @property
    def newline(self) -> str:
        """What most lines at the start of the file end with."""
        head = self.raw[:_ENDING_PROBE]
        crlf = head.count("\r\n")
        return "\r\n" if crlf > head.count("\n") - crlf else "\n"

    def visible(self) -> str:
        """`normal`, with bytes that are no text in this encoding shown as replacement characters."""
        return self.normal if self.raw.isascii() else _ESCAPED_BYTE.sub("\ufffd", self.normal)

    def encode(self, text: str) -> bytes:
        """Text of this file, as the bytes that it came from."""
        return text.encode(self.encoding, "surrogatepass" if self.encoding.startswith("utf-16") else "surrogateescape")

    def encode_new(self, text: str) -> bytes:
        """Text that is new in this file. ToolError when the file's encoding has no such character."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise ToolError(f"The file is encoded as {self.encoding}, which has no character {character!r}.") from None


def is_binary(data: bytes) -> bool:
    """Judged by the start: a null byte, or more than a tenth of control characters. UTF-16 with its mark is text."""
    if data.startswith((BOM_UTF32_LE, BOM_UTF32_BE)):
        return True
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return len(data) % 2 == 1
    head = data[:_PROBE]
    return b"\0" in head or len(head) - len(head.translate(None, _CONTROL)) > len(head) // 10


def decode(data: bytes) -> Text:
    """Every input has an answer, and `bom + encode(raw)` is the input."""
    for bom, encoding in ((BOM_UTF16_LE, "utf-16-le"), (BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(bom):
            try:
                return Text(data[len(bom) :].decode(encoding, "surrogatepass"), encoding, bom)
            except UnicodeDecodeError:
                break
    if data.startswith(BOM_UTF8):
        return Text(data[len(BOM_UTF8) :].decode("utf-8", "surrogateescape"), "utf-8", BOM_UTF8)
    text = data.decode("utf-8", "surrogateescape")
    if text.isascii():
        return Text(text, "utf-8")
    if _ESCAPED_BYTE.search(text) and not _REAL_MULTIBYTE.search(text):
        return Text(*_one_byte(data))
    return Text(text, "utf-8")


def _one_byte(data: bytes) -> tuple[str, str]:
    """Not a single character of several bytes: an old encoding of one byte a character."""
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


class Offsets:
    """From positions in `normal` to positions in `raw`."""

    def __init__(self, raw: str) -> None:
        lengths = [len(line) for line in raw.split("\r\n")]
        ends = list(accumulate(lengths[:-1]))
        self._breaks = [end + index for index, end in enumerate(ends)]

    def __getitem__(self, position: int) -> int:
        """A position behind a line's newline is behind both of its characters."""
        return position + bisect_right(self._breaks, position - 1)
