"""What crosses to the process that runs code: nothing is lost, and nothing but frames gets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.tools.extension.repl.framing import Asked, BadFrame, Decoder, Done, Frame, Printed, Ready, encode
from retinue.tools.extension.repl.words import Kept

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FRAMES: st.SearchStrategy[Frame] = st.one_of(
    st.just(Ready(kind="ready")),
    st.builds(Printed, kind=st.just("out"), text=st.text()),
    st.builds(Asked, kind=st.just("call"), id=st.integers(), name=st.text(), input=st.dictionaries(st.text(), VALUES)),
    st.builds(Done, kind=st.just("done"), id=st.integers(), value=st.none() | st.text(), error=st.none() | st.text()),
)


def fed(decoder: Decoder, data: bytes) -> list[Frame]:
    decoder.feed(data)
    found: list[Frame] = []
    while (frame := decoder.next()) is not None:
        found.append(frame)
    return found


@given(st.lists(FRAMES, max_size=6), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(encode(frame.model_dump()) for frame in frames)
    decoder, found, at = Decoder(), list[Frame](), 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += fed(decoder, stream[at : at + size])
        at += size
    assert found == frames


@given(st.binary(max_size=300))
def test_bytes_that_are_no_frame_say_so_or_wait_and_never_anything_else(data: bytes) -> None:
    try:
        found = fed(Decoder(most=200), data)
    except BadFrame:
        return
    assert all(isinstance(frame, Ready | Printed | Asked | Done) for frame in found)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_json_that_is_no_known_frame_is_refused(value: dict[str, object]) -> None:
    body = json.dumps({"kind": "approve", **value}).encode()
    with pytest.raises(BadFrame):
        fed(Decoder(), len(body).to_bytes(4, "big") + body)


@given(st.integers(201, 2**32 - 1))
def test_a_frame_that_is_too_long_is_refused_by_its_length_alone(size: int) -> None:
    with pytest.raises(BadFrame):
        fed(Decoder(most=200), size.to_bytes(4, "big"))


@given(st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=30)), st.integers(2, 40))
def test_of_a_long_output_the_beginning_and_the_end_are_kept(pieces: list[str], limit: int) -> None:
    kept, whole = Kept(limit), "".join(pieces)
    for piece in pieces:
        kept.add(piece)
    text, half = kept.text(), limit // 2
    assert kept.total == len(whole)
    assert text.startswith(whole[:half])
    assert text.endswith(whole[len(whole) - half :] if len(whole) >= 2 * half else whole)
    assert text == whole or "left out" in text
