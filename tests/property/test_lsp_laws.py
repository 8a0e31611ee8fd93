"""Laws of talking to language servers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.lsp import answers, watch
from retinue.tools.lsp.positions import Encoding, from_units, to_units
from retinue.tools.lsp.uris import path_of, uri_of
from retinue.tools.lsp.wire import Frames, ProtocolBroken, encoded

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
messages = st.dictionaries(st.text(max_size=8), values, max_size=4)
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")


@settings(deadline=None)
@given(sent=st.lists(messages, max_size=5), cuts=st.lists(st.integers(1, 50), max_size=200))
def test_messages_arrive_as_they_were_sent_however_the_stream_is_cut(
    sent: list[dict[str, JsonValue]], cuts: list[int]
) -> None:
    data = b"".join(map(encoded, sent))
    frames, found, place = Frames(), list[dict[str, JsonValue]](), 0
    for cut in [*cuts, len(data)]:
        found += frames.feed(data[place : place + cut])
        place += cut
    assert found == sent


@settings(deadline=None)
@given(st.lists(st.binary(max_size=60) | st.just(b"Content-Length: 5\r\n\r\n") | st.just(b"\r\n\r\n"), max_size=8))
def test_any_bytes_are_messages_or_break_the_connection(pieces: list[bytes]) -> None:
    frames, whole, broken = Frames(), b"".join(pieces), False
    found: list[dict[str, JsonValue]] = []
    for piece in pieces:
        try:
            found += frames.feed(piece)
        except ProtocolBroken:
            broken = True
            break
    assert broken or len(found) <= whole.count(b"\r\n\r\n")
    assert all(isinstance(message, dict) for message in found)


@settings(deadline=None)
@given(line=st.text(max_size=20), column=st.integers(0, 25), encoding=st.sampled_from(ENCODINGS))
def test_a_column_comes_back_from_the_servers_units(line: str, column: int, encoding: Encoding) -> None:
    units = to_units(line, column, encoding)
    assert from_units(line, units, encoding) == min(column, len(line))
    whole = line[:column].encode(encoding if encoding == "utf-8" else f"{encoding}-le", "surrogatepass")
    assert units == len(whole) // {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1), min_size=1))
def test_a_path_comes_back_from_its_address(parts: list[str]) -> None:
    path = Path(os.path.normpath("/" + "/".join(parts)))
    if str(path).startswith("//"):
        return
    assert path_of(uri_of(path)) == path


@settings(deadline=None)
@given(values)
def test_no_answer_of_a_server_is_more_than_an_error(found: JsonValue) -> None:
    reader = answers.Reader("utf-16", lambda _file, _line: "")
    for read in (
        reader.locations,
        reader.items,
        reader.callers,
        reader.callees,
        lambda value: reader.symbols(value, "file:///a"),
        answers.hover_text,
        answers.report_of,
        answers.published_in,
        answers.items_in,
    ):
        assert complaint(read, found) in ("", "The language server gave an answer that does not fit the protocol.")


def complaint(read: Callable[[JsonValue], object], found: JsonValue) -> str:
    try:
        read(found)
    except ToolError as error:
        return str(error)
    return ""


names = st.sampled_from(["a.x", "b.x", "c/d.x", "c/e.x", "f.json", "g.other"])


@settings(deadline=None)
@given(before=st.dictionaries(names, st.binary(max_size=3)), after=st.dictionaries(names, st.binary(max_size=3)))
def test_what_is_told_of_changes_turns_the_old_look_into_the_new_one(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        first = _laid_out(root, before)
        second = _laid_out(root, after)
        names = set(first.stamps)
        for path, kind in watch.changes(first, second):
            assert (path in first.stamps) == (kind != watch.CREATED)
            (names.discard if kind == watch.DELETED else names.add)(path)
        assert names == set(second.stamps)
        assert {os.path.relpath(path, root) for path in names} == {name for name in after if name != "g.other"}


def _laid_out(root: Path, files: dict[str, bytes]) -> watch.Look:
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, data in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    return watch.look(root, frozenset({".x"}))
