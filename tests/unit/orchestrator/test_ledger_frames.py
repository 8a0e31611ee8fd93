from __future__ import annotations

import pickle
import struct
from pathlib import PurePath
from zlib import crc32

import msgpack
import pytest
from pydantic import JsonValue

from retinue.orchestrator.ledger import frames
from retinue.orchestrator.ledger.frames import (
    HEADER_SIZE,
    OPENED,
    FrameDecoder,
    LedgerError,
    Record,
    UnwritableRecord,
    VoidFilter,
    Wanted,
    decode_header,
    encode_frame,
    encode_header,
    known_header,
    live_records,
    new_marker,
)

MARKER = new_marker(b"\x01\x02\x03\x04\x05\x06\x07")
OTHER = new_marker(b"\x11\x12\x13\x14\x15\x16\x17")


def record(n: int = 0, *, writer: str = "ada", incarnation: int = 1, kind: str = "block", **body: JsonValue) -> Record:
    return Record(writer, incarnation, n, 1700000000.25 + n, kind, body)


def frame(n: int = 0, **body: JsonValue) -> bytes:
    return encode_frame(MARKER, record(n, **body))


def decode(data: bytes, marker: bytes = MARKER) -> tuple[list[Record], FrameDecoder]:
    decoder = FrameDecoder(marker)
    return decoder.feed(data), decoder


def framed(payload: bytes, length: int | None = None) -> bytes:
    """A frame with a right checksum around any payload."""
    size = struct.pack("<I", len(payload) if length is None else length)
    return MARKER + size + struct.pack("<I", crc32(payload, crc32(size))) + payload


def test_a_record_comes_back_as_it_was_written() -> None:
    written = record(7, text="grüß", list=[1, 2.5, None, True, {"k": "v"}], empty={})
    found, decoder = decode(encode_frame(MARKER, written))
    assert found == [written]
    assert decoder.skipped_bytes == 0


def test_lone_surrogates_of_a_tools_output_survive() -> None:
    found, _ = decode(frame(text="a\udcffb\ud800"))
    assert found[0].body == {"text": "a\udcffb\ud800"}


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400, -(10**400), 2**63, 255])
def test_an_integer_of_any_size_that_a_model_wrote_survives(number: int) -> None:
    found, _ = decode(frame(number=number))
    assert found[0].body == {"number": number}


def test_a_frame_is_marker_length_checksum_payload() -> None:
    data = frame(3, x=1)
    length, crc = struct.unpack_from("<II", data, 8)
    assert data[:8] == MARKER
    assert length == len(data) - 16
    assert crc == crc32(data[16:], crc32(data[8:12]))
    assert list(msgpack.unpackb(data[16:])) == ["writer", "kind", "incarnation", "n", "at", "body"]


def test_a_marker_starts_with_a_byte_of_its_own() -> None:
    marker = new_marker(b"\xc1" * 8)
    assert len(marker) == 8
    assert marker.count(0xC1) == 1
    assert marker.startswith(b"\xc1")


def test_records_know_where_their_frames_start() -> None:
    first, second = frame(0), frame(1, text="longer")
    found, decoder = decode(first + second)
    assert [r.offset for r in found] == [HEADER_SIZE, HEADER_SIZE + len(first)]
    assert decoder.offset == HEADER_SIZE + len(first) + len(second)


def test_bytes_may_come_one_by_one() -> None:
    decoder = FrameDecoder(MARKER)
    data = frame(0) + frame(1) + frame(2)
    found = [r.n for byte in data for r in decoder.feed(bytes((byte,)))]
    assert found == [0, 1, 2]
    assert decoder.skipped_bytes == 0


def test_a_torn_tail_is_pending_until_the_rest_comes() -> None:
    decoder = FrameDecoder(MARKER)
    data = frame(1)
    assert decoder.feed(frame(0) + data[:-1])[0].n == 0
    assert decoder.offset == HEADER_SIZE + len(frame(0))
    assert [r.n for r in decoder.feed(data[-1:])] == [1]


@pytest.mark.parametrize("kept", [3, 8, 12, 16, 20])
def test_a_torn_frame_that_another_follows_is_passed_over(kept: int) -> None:
    found, decoder = decode(frame(0) + frame(1)[:kept] + frame(2) + frame(3))
    assert [r.n for r in found] == [0, 2, 3]
    assert decoder.skipped_bytes == kept


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(framed(b"\xc1"), id="no msgpack"),
        pytest.param(framed(b""), id="empty"),
        pytest.param(framed(msgpack.packb([1, 2])), id="no map"),
        pytest.param(framed(msgpack.packb({"writer": "ada"})), id="keys missing"),
        pytest.param(
            framed(msgpack.packb({"writer": 1, "kind": "k", "incarnation": 1, "n": 0, "at": 0.0, "body": {}})),
            id="writer is no text",
        ),
        pytest.param(
            framed(msgpack.packb({"writer": "a", "kind": "k", "incarnation": 1, "n": True, "at": 0.0, "body": {}})),
            id="number is a truth value",
        ),
        pytest.param(framed(msgpack.packb({(1,): 1}, strict_types=False)), id="key is a list"),
        pytest.param(framed(msgpack.packb(msgpack.ExtType(7, b"x"))), id="unknown extension"),
        pytest.param(framed(b"", length=0xFFFFFFFF), id="absurd length"),
        pytest.param(framed(b"x" * 20, length=18), id="length too small"),
        pytest.param(encode_frame(OTHER, Record("eve", 1, 0, 0.0, "block", {})), id="frame of another run"),
        pytest.param(b"\0" * 4096, id="zeros"),
    ],
)
def test_reading_goes_on_behind_damage(damaged: bytes) -> None:
    found, decoder = decode(frame(0) + damaged + frame(1))
    assert [r.n for r in found] == [0, 1]
    assert decoder.skipped_bytes >= len(damaged) - 4


def test_what_was_passed_over_is_counted() -> None:
    damaged = bytearray(frame(1))
    damaged[-1] ^= 1
    _, decoder = decode(frame(0) + damaged + frame(2))
    assert (decoder.skipped_frames, decoder.skipped_bytes) == (1, len(damaged))


def test_a_length_that_grew_by_damage_hides_no_later_record() -> None:
    damaged = bytearray(frame(1))
    damaged[10] ^= 0x20  # two megabytes more, beyond the end of the file
    found, _ = decode(frame(0) + damaged + frame(2) + frame(3))
    assert [r.n for r in found] == [0, 2, 3]


def test_an_absurd_length_is_not_waited_for() -> None:
    _, decoder = decode(frame(0) + framed(b"", length=frames.MAX_PAYLOAD + 1))
    assert decoder.skipped_frames == 1
    assert decoder.offset == HEADER_SIZE + len(frame(0)) + 16


def test_a_text_cannot_forge_a_record() -> None:
    forged = encode_frame(MARKER, record(9, writer="team", kind="phase_changed", phase="done"))
    with pytest.raises(UnwritableRecord, match="contains this ledger's own frame marker"):
        encode_frame(MARKER, Record("ada", 1, 0, 0.0, "block", {"data": forged}))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(writer="x" * 65), "longer than 64 bytes"),
        (record(kind="ü" * 33), "longer than 64 bytes"),
        (Record("ada", 1, 0, 0.0, "block", {"x": object()}), "object is not a JSON value"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_record_that_cannot_be_read_again_is_not_written(bad: Record, why: str) -> None:
    with pytest.raises(UnwritableRecord, match=why):
        encode_frame(MARKER, bad)


def test_nesting_that_msgpack_cannot_write_is_refused() -> None:
    deep: JsonValue = []
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(UnwritableRecord, match="cannot be written to the ledger"):
        encode_frame(MARKER, record(deep=deep))


def test_a_record_beyond_the_cap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_PAYLOAD", 1000)
    with pytest.raises(UnwritableRecord, match="at most 1000"):
        frame(text="x" * 1000)


def test_the_header_survives_damage_to_either_copy() -> None:
    header = encode_header(MARKER)
    assert len(header) == HEADER_SIZE
    for at in range(HEADER_SIZE):
        damaged = bytearray(header)
        damaged[at] ^= 0xFF
        found = decode_header(bytes(damaged))
        assert found is not None
        assert (found.version, found.marker) == (1, MARKER)


@pytest.mark.parametrize("data", [b"", b"RTNLOG", b"\0" * HEADER_SIZE, b"#!/bin/sh\n" * 9])
def test_what_is_not_a_ledger_is_said_not_to_be_one(data: bytes) -> None:
    with pytest.raises(LedgerError, match=r"/run/ledger\.rlog is not a ledger"):
        known_header(PurePath("/run/ledger.rlog"), data)


def test_an_unknown_version_is_refused_with_both_versions() -> None:
    with pytest.raises(LedgerError, match="has ledger version 9, and this build reads version 1"):
        known_header(PurePath("/run/ledger.rlog"), encode_header(MARKER, version=9))


def wanted_of(wanted: Wanted, records: list[Record]) -> list[tuple[str, str]]:
    decoder = FrameDecoder(MARKER, wanted=wanted)
    found = decoder.feed(b"".join(encode_frame(MARKER, r) for r in records))
    return [(r.writer, r.kind) for r in found if r in wanted]


def test_a_reader_gets_the_writers_and_kinds_that_it_asks_for() -> None:
    pairs = [(w, k) for w in ("ada", "ada-2", "x" * 64) for k in ("block", "blocked", "k" * 64)]
    records = [record(n, writer=w, kind=k, text="kind block") for n, (w, k) in enumerate(pairs)]
    assert wanted_of(Wanted(), records) == pairs
    assert wanted_of(Wanted(writers=["ada"]), records) == [p for p in pairs if p[0] == "ada"]
    assert wanted_of(Wanted(writers=["x" * 64]), records) == [p for p in pairs if p[0] == "x" * 64]
    assert wanted_of(Wanted(kinds=["k" * 64]), records) == [p for p in pairs if p[1] == "k" * 64]
    assert wanted_of(Wanted(["ada", "ada-2"], ["block"]), records) == [("ada", "block"), ("ada-2", "block")]
    assert wanted_of(Wanted(writers=[]), records) == []
    assert wanted_of(Wanted(kinds=[]), records) == []


def test_who_asks_for_a_kind_still_learns_of_new_incarnations() -> None:
    decoder = FrameDecoder(MARKER, wanted=Wanted(["ada"], ["block"]))
    records = [record(kind=OPENED), record(kind="request"), record(), record(writer="bob", kind=OPENED)]
    found = decoder.feed(b"".join(encode_frame(MARKER, r) for r in records))
    assert [(r.writer, r.kind) for r in found] == [("ada", OPENED), ("ada", "block")]


def test_a_new_incarnation_voids_what_an_earlier_one_still_writes() -> None:
    first, second = record(0, kind=OPENED), record(0, kind=OPENED, incarnation=2)
    before, after = record(1), record(2)
    late_opening = record(3, kind=OPENED)
    other, newer = record(1, writer="bob"), record(1, incarnation=2)
    order = [first, before, second, after, late_opening, other, newer]
    assert list(live_records(order)) == [first, before, second, other, newer]


def test_a_writer_without_an_opening_counts() -> None:
    assert VoidFilter().admits(record())


def test_errors_of_the_ledger_cross_processes() -> None:
    again = pickle.loads(pickle.dumps(LedgerError("the ledger is gone")))
    assert isinstance(again, LedgerError)
    assert (str(again), again.exit_code) == ("the ledger is gone", 3)
