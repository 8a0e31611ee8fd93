"""Laws of the ledger's framing: whatever happens to the bytes, every undamaged record comes back, and nothing else."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from retinue.orchestrator.ledger.frames import (
    HEADER_SIZE,
    OPENED,
    FrameDecoder,
    Record,
    Wanted,
    decode_header,
    encode_frame,
    encode_header,
    live_records,
    new_marker,
)

MARKER = new_marker(b"retinue")

any_text = st.text(st.characters(exclude_categories=()), max_size=30)
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)
numbers = st.integers(0, 2**40)
writers = st.sampled_from(["team", "ada", "ada~2", "bob"])
kinds = st.sampled_from([OPENED, "block", "request", "tool_finished"])
records = st.builds(
    Record,
    writer=writers,
    incarnation=st.integers(0, 4),
    n=numbers,
    at=st.floats(0, 2**33),
    kind=kinds,
    body=st.dictionaries(any_text, json_values, max_size=4),
)
logs = st.lists(records, min_size=1, max_size=8)


def frames_of(log: list[Record]) -> list[bytes]:
    return [encode_frame(MARKER, record) for record in log]


def decoded(data: bytes) -> list[Record]:
    return FrameDecoder(MARKER).feed(data)


@given(logs)
def test_what_is_written_comes_back_in_order(log: list[Record]) -> None:
    assert decoded(b"".join(frames_of(log))) == log


@given(logs, st.data())
def test_a_truncation_costs_only_what_it_cut(log: list[Record], data: st.DataObject) -> None:
    frames = frames_of(log)
    whole = b"".join(frames)
    kept = data.draw(st.integers(0, len(whole)))
    ends = list(accumulate(map(len, frames)))
    assert decoded(whole[:kept]) == log[: sum(end <= kept for end in ends)]


@given(logs, st.data())
def test_a_flipped_byte_costs_only_its_own_record(log: list[Record], data: st.DataObject) -> None:
    frames = frames_of(log)
    whole = bytearray(b"".join(frames))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    hit = sum(end <= at for end in accumulate(map(len, frames)))
    assert decoded(bytes(whole)) == log[:hit] + log[hit + 1 :]


@given(logs, st.lists(st.tuples(st.integers(0, 8), st.binary(max_size=40)), max_size=4))
def test_foreign_bytes_between_frames_cost_nothing(log: list[Record], junk: list[tuple[int, bytes]]) -> None:
    frames = frames_of(log)
    for at, garbage in junk:
        frames.insert(min(at, len(frames)), garbage)
    assert decoded(b"".join(frames)) == log


@given(logs, st.data())
def test_torn_frames_between_whole_ones_cost_nothing_else(log: list[Record], data: st.DataObject) -> None:
    torn = data.draw(st.sets(st.integers(0, len(log) - 1)))
    pieces = [
        frame[: data.draw(st.integers(0, len(frame) - 1))] if n in torn else frame
        for n, frame in enumerate(frames_of(log))
    ]
    assert decoded(b"".join(pieces)) == [record for n, record in enumerate(log) if n not in torn]


@given(logs, logs, st.data())
def test_any_interleaving_of_two_writers_keeps_the_order_of_each(
    first: list[Record], second: list[Record], data: st.DataObject
) -> None:
    turns = data.draw(st.permutations([0] * len(first) + [1] * len(second)))
    sources = (iter(first), iter(second))
    mixed = [next(sources[turn]) for turn in turns]
    back = decoded(b"".join(frames_of(mixed)))
    assert back == mixed
    assert [r for r, turn in zip(back, turns, strict=True) if turn == 0] == first


@given(logs, st.data(), st.lists(st.integers(0, 4000), max_size=6), st.binary(max_size=30))
def test_how_the_bytes_are_cut_up_changes_nothing(
    log: list[Record], data: st.DataObject, cuts: list[int], junk: bytes
) -> None:
    frames = frames_of(log)
    frames.insert(data.draw(st.integers(0, len(frames))), junk)
    whole = bytearray(b"".join(frames))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(0, 255))
    decoder = FrameDecoder(MARKER)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    found = [record for start, end in pairwise(edges) for record in decoder.feed(bytes(whole[start:end]))]
    at_once = FrameDecoder(MARKER)
    assert found == at_once.feed(bytes(whole))
    assert (decoder.offset, decoder.skipped_bytes) == (at_once.offset, at_once.skipped_bytes)


@given(logs, st.integers(0, 8))
def test_another_decoder_can_go_on_at_any_frame(log: list[Record], done: int) -> None:
    frames = frames_of(log)
    first = FrameDecoder(MARKER)
    head = first.feed(b"".join(frames[:done]))
    rest = b"".join(frames)[first.offset - HEADER_SIZE :]
    assert head + FrameDecoder(MARKER, first.offset).feed(rest) == log


@given(st.binary(max_size=300), st.lists(st.binary(max_size=80), max_size=5))
def test_no_bytes_at_all_raise_or_become_a_record(head: bytes, rest: list[bytes]) -> None:
    decoder = FrameDecoder(MARKER)
    assert [r for piece in (head, *rest) for r in decoder.feed(MARKER + piece)] == []
    assert decode_header(head) is None


@given(st.binary(min_size=7, max_size=9), st.integers(0, HEADER_SIZE - 1), st.integers(1, 255))
def test_the_marker_survives_any_flipped_byte_of_the_header(random: bytes, at: int, flip: int) -> None:
    marker = new_marker(random)
    header = bytearray(encode_header(marker))
    header[at] ^= flip
    found = decode_header(bytes(header))
    assert found is not None
    assert found.marker == marker


@given(logs, st.none() | st.sets(writers), st.none() | st.sets(kinds))
def test_a_choosing_reader_sees_what_a_full_reader_would_choose(
    log: list[Record], some_writers: set[str] | None, some_kinds: set[str] | None
) -> None:
    wanted = Wanted(some_writers, some_kinds)
    chosen = live_records(FrameDecoder(MARKER, wanted=wanted).feed(b"".join(frames_of(log))))
    assert [r for r in chosen if r in wanted] == [
        r
        for r in live_records(log)
        if (some_writers is None or r.writer in some_writers) and (some_kinds is None or r.kind in some_kinds)
    ]


@given(st.lists(records, max_size=20))
def test_no_record_that_counts_comes_from_a_replaced_incarnation(log: list[Record]) -> None:
    opened: dict[str, int] = {}
    for record in live_records(log):
        assert record.incarnation >= opened.get(record.writer, 0)
        if record.kind == OPENED:
            opened[record.writer] = record.incarnation
