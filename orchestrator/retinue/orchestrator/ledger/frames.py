# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""The bytes of a ledger: a header, then frames. Pure: knows no file, clock or process.

    header   two equal copies of: magic (6) · version (u16) · marker (8) · CRC-32 of these (u32)
    frame    marker (8) · payload length (u32) · CRC-32 of length and payload (u32) · payload
    payload  msgpack map with the keys writer, kind, incarnation, n, at, body, in this order

Integers are little-endian. The marker is drawn once per run and occurs in no payload, so after damage the next marker
is the next frame. The order of keys is part of the format: who wants one writer's records compares bytes, not maps.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import cast
from zlib import crc32

import msgpack
from pydantic import JsonValue

from retinue.tools.errors import EnvironmentProblem, InvariantBroken

MAGIC = b"RTNLOG"
VERSION = 1
MARKER_SIZE = 8
MAX_PAYLOAD = 64 * 1024 * 1024
OPENED = "opened"
"""Kind of the first record of every (writer, incarnation)."""

_COPY = struct.Struct("<6sH8sI")
_HEAD = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
HEADER_SIZE = 2 * _COPY.size
_FRAME_HEAD = MARKER_SIZE + _HEAD.size
_BOUNDARY = 0xC1
"""Starts every marker and occurs in it once. Neither UTF-8 nor a msgpack type uses this byte."""
_MAX_NAME = 64
_NAMES_WITHIN = 1 + 2 * (7 + 2 + _MAX_NAME)
"""The keys and values of writer and kind end before this many bytes of a payload."""
_BIG_INT = 1
_KEYS = ("writer", "kind", "incarnation", "n", "at", "body")
_TYPES = (str, str, int, int, float, dict)


class LedgerError(EnvironmentProblem):
    """The run's ledger cannot be read or written; the message names the file and the remedy."""


class UnwritableRecord(InvariantBroken):
    """A record that cannot become a frame: too large, too deep, or of values that are not JSON's."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the ledger. (writer, incarnation, n) is unique; `offset` is where its frame starts in the file."""

    writer: str
    incarnation: int
    n: int
    at: float
    kind: str
    body: Mapping[str, JsonValue]
    offset: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Header:
    version: int
    marker: bytes


def new_marker(random: bytes) -> bytes:
    """A marker from at least 7 random bytes. It never overlaps itself."""
    tail = bytes(byte ^ 1 if byte == _BOUNDARY else byte for byte in random[: MARKER_SIZE - 1])
    if len(tail) < MARKER_SIZE - 1:
        raise InvariantBroken("a marker needs 7 random bytes")
    return bytes((_BOUNDARY,)) + tail


def encode_header(marker: bytes, version: int = VERSION) -> bytes:
    plain = _COPY.pack(MAGIC, version, marker, 0)[: -_LENGTH.size]
    return 2 * (plain + _LENGTH.pack(crc32(plain)))


def decode_header(data: bytes) -> Header | None:
    """From either copy, whatever happened to the other. None when both are damaged or this is no ledger."""
    for start in (0, _COPY.size):
        copy = data[start : start + _COPY.size]
        if len(copy) < _COPY.size:
            return None
        magic, version, marker, crc = _COPY.unpack(copy)
        if magic == MAGIC and crc == crc32(copy[: -_LENGTH.size]):
            return Header(version, marker)
    return None


def known_header(path: PurePath, data: bytes) -> Header:
    """LedgerError unless this build can read what follows."""
    header = decode_header(data)
    if header is None:
        raise LedgerError(
            f"{path} is not a ledger, or its header is damaged: restore it from a backup, or start a new run"
        )
    if header.version != VERSION:
        raise LedgerError(
            f"{path} has ledger version {header.version}, and this build reads version {VERSION}: "
            "use the version of retinue that wrote it"
        )
    return header


def encode_frame(marker: bytes, record: Record) -> bytes:
    for name in (record.writer, record.kind):
        if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME:
            raise UnwritableRecord(f"a ledger record's writer or kind is longer than {_MAX_NAME} bytes: {name[:80]!r}")
    try:
        payload = msgpack.packb(
            {
                "writer": record.writer,
                "kind": record.kind,
                "incarnation": record.incarnation,
                "n": record.n,
                "at": float(record.at),
                "body": record.body,
            },
            default=_beyond_64_bits,
            unicode_errors="surrogatepass",
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise UnwritableRecord(f"{record.kind} of {record.writer} cannot be written to the ledger: {error}") from error
    assert isinstance(payload, bytes)
    if len(payload) > MAX_PAYLOAD:
        raise UnwritableRecord(
            f"{record.kind} of {record.writer} has {len(payload)} bytes; a ledger record has at most {MAX_PAYLOAD}"
        )
    if marker in payload:
        # Impossible by chance. Taken literally it would let the author of a text forge a record after damage.
        raise UnwritableRecord(f"{record.kind} of {record.writer} contains this ledger's own frame marker")
    length = _LENGTH.pack(len(payload))
    return marker + length + _LENGTH.pack(crc32(payload, crc32(length))) + payload


def _beyond_64_bits(value: object) -> msgpack.ExtType:
    """A model may write any integer into a call."""
    if isinstance(value, int):
        return msgpack.ExtType(_BIG_INT, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _extension(code: int, data: bytes) -> int:
    if code != _BIG_INT:
        raise ValueError(f"unknown extension {code}")
    return int.from_bytes(data, "little", signed=True)


def decode_payload(payload: bytes | bytearray | memoryview, offset: int = -1) -> Record | None:
    """None when it is not what `encode_frame` writes."""
    try:
        fields: object = msgpack.unpackb(
            payload, strict_map_key=False, ext_hook=_extension, unicode_errors="surrogatepass"
        )
    except (ValueError, TypeError, msgpack.exceptions.UnpackException):
        return None
    if not isinstance(fields, dict):
        return None
    # Not a `match`: it would take longer than all the rest, for every record of a long run.
    values = tuple(cast(dict[object, object], fields).values())
    if tuple(cast(dict[object, object], fields)) != _KEYS or tuple(map(type, values)) != _TYPES:
        return None
    writer, kind, incarnation, n, at, body = cast(tuple[str, str, int, int, float, dict[str, JsonValue]], values)
    return Record(writer, incarnation, n, at, kind, body, offset)


class Wanted:
    """Which records a reader asks for, by writer, by kind or both, told from the first bytes of a payload."""

    def __init__(self, writers: Collection[str] | None = None, kinds: Collection[str] | None = None) -> None:
        self._writers = None if writers is None else frozenset(writers)
        self._kinds = None if kinds is None else frozenset(kinds)
        head = bytes((0x86,)) + _packed("writer")
        self._heads = tuple(head + _packed(writer) for writer in self._writers or ())
        self._tokens = tuple(_packed("kind") + _packed(kind) for kind in sorted({*(self._kinds or ()), OPENED}))
        self.everything = writers is None and kinds is None

    def may_matter(self, data: bytearray, start: int, end: int) -> bool:
        """False only for a payload that is neither asked for nor an `opened` of an asked-for writer."""
        if self._writers is not None and not data.startswith(self._heads, start):
            return False
        if self._kinds is None:
            return True
        names_end = min(end, start + _NAMES_WITHIN)
        return any(data.find(token, start, names_end) >= 0 for token in self._tokens)

    def __contains__(self, record: Record) -> bool:
        return (self._writers is None or record.writer in self._writers) and (
            self._kinds is None or record.kind in self._kinds
        )


def _packed(text: str) -> bytes:
    packed = msgpack.packb(text, unicode_errors="surrogatepass")
    assert isinstance(packed, bytes)
    return packed


class FrameDecoder:
    """Takes the bytes after the header in any pieces; gives back whole, undamaged records in file order.

    Damage never raises: it goes on at the next marker, and what it passed over is counted. A frame whose end has not
    come yet is pending, unless another frame already follows it: then it was torn.
    """

    def __init__(self, marker: bytes, offset: int = HEADER_SIZE, wanted: Wanted | None = None) -> None:
        self.skipped_bytes = 0
        self.skipped_frames = 0
        self._marker = marker
        self._wanted = wanted
        self._data = bytearray()
        self._start = offset
        self._searched = 0

    @property
    def offset(self) -> int:
        """Everything before it in the file is decoded or passed over; a new decoder may go on here."""
        return self._start

    def feed(self, data: bytes) -> list[Record]:
        self._data += data
        found: list[Record] = []
        at = 0
        while (end := self._next(at, found)) is not None:
            at = end
        del self._data[:at]
        self._start += at
        self._searched = max(0, self._searched - at)
        return found

    def _next(self, at: int, found: list[Record]) -> int | None:
        """Handle the frame or the damage at `at`. Where to go on, or None when more bytes are needed."""
        data = self._data
        if not data.startswith(self._marker, at):
            return self._resync(at)
        if len(data) - at < _FRAME_HEAD:
            return self._after_torn(at)
        length, crc = _HEAD.unpack_from(data, at + MARKER_SIZE)
        if length > MAX_PAYLOAD:
            return self._bad(at)
        start = at + _FRAME_HEAD
        end = start + length
        if end > len(data):
            return self._after_torn(at)
        return end if self._take(at, end, crc, found) else self._bad(at)

    def _take(self, at: int, end: int, crc: int, found: list[Record]) -> bool:
        start = at + _FRAME_HEAD
        # A view must be gone before the buffer may shrink.
        with memoryview(self._data)[start:end] as payload:
            if crc != crc32(payload, crc32(self._data[at + MARKER_SIZE : at + MARKER_SIZE + _LENGTH.size])):
                return False
            if self._wanted is not None and not self._wanted.may_matter(self._data, start, end):
                return True
            record = decode_payload(payload, self._start + at)
        if record is not None:
            found.append(record)
        return record is not None

    def _bad(self, at: int) -> int:
        """The frame at `at` is damaged: its marker cannot be trusted to be followed by anything."""
        self.skipped_frames += 1
        self.skipped_bytes += MARKER_SIZE
        return at + MARKER_SIZE

    def _after_torn(self, at: int) -> int | None:
        """A later marker in what has come shows that the rest of this frame never will."""
        searched = max(at + MARKER_SIZE, self._searched)
        following = self._data.find(self._marker, searched)
        if following < 0:
            self._searched = max(searched, len(self._data) - MARKER_SIZE + 1)
            return None
        self.skipped_frames += 1
        self.skipped_bytes += following - at
        return following

    def _resync(self, at: int) -> int | None:
        following = self._data.find(self._marker, at)
        if following < 0:
            following = len(self._data) - _begun(self._data, self._marker, at)
        self.skipped_bytes += following - at
        return following if following > at else None


def _begun(data: bytearray, marker: bytes, at: int) -> int:
    """How many bytes at the end of `data`, not before `at`, may be the start of a marker."""
    longest = min(len(marker) - 1, len(data) - at)
    return next((size for size in range(longest, 0, -1) if data.endswith(marker[:size])), 0)


class VoidFilter:
    """Fencing: after `opened(writer, k + 1)` nothing that an earlier incarnation of the writer still appends counts."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def admits(self, record: Record) -> bool:
        """To be asked in file order, about every `opened` and whatever else is of interest."""
        newest = self._newest.get(record.writer)
        if newest is not None and record.incarnation < newest:
            return False
        if record.kind == OPENED:
            self._newest[record.writer] = record.incarnation
        return True


def live_records(records: Iterable[Record]) -> Iterator[Record]:
    voids = VoidFilter()
    return (record for record in records if voids.admits(record))
