"""Edit and Write never change a byte that they were not asked to change."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from retinue.tools.base import ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.files.codec import Offsets, Text, decode, is_binary
from retinue.tools.files.edit.apply import find, splice
from retinue.tools.files.edit.tool import Edit, EditInput
from retinue.tools.files.read.text import kind_by
from retinue.tools.files.read.tool import Read, ReadInput
from retinue.tools.files.state import FileState
from retinue.tools.files.swap import exchange
from retinue.tools.files.write.tool import Write, WriteInput
from retinue.tools.shell.runner import KeeperShell

ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with mark": (BOM_UTF8, "utf-8"),
    "utf-16-le": (BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (BOM_UTF16_BE, "utf-16-be"),
}
PIECES = ["\n", "\r\n", "\r", "a", "b", "ab", "é", "\u201cq\u201d", "\u2018", "\t", " ", "𝄞", '"', "'"]
pieces = st.lists(st.sampled_from(PIECES), max_size=30)
texts = pieces.map("".join)
contents = st.one_of(st.binary(max_size=200), texts.map(str.encode)).filter(lambda d: kind_by(d, ".txt") == "text")


@given(st.binary(max_size=300))
def test_every_byte_survives_decoding_and_encoding(data: bytes) -> None:
    text = decode(data)
    assert text.bom + text.encode(text.raw) == data


@given(texts, texts, st.sampled_from(sorted(ENCODINGS)))
def test_encodings_with_a_mark_are_recognised(head: str, tail: str, kind: str) -> None:
    bom, encoding = ENCODINGS[kind]
    data = bom + (head + tail).encode(encoding)
    text = decode(data)
    assert (text.raw, text.bom) == (head + tail, bom)


@given(texts)
def test_a_position_in_the_normal_text_names_the_same_place_in_the_raw_one(raw: str) -> None:
    normal, offsets = Text(raw, "utf-8").normal, Offsets(raw)
    for position in range(len(normal) + 1):
        assert raw[: offsets[position]].replace("\r\n", "\n") == normal[:position]


@given(contents, st.data())
def test_an_edit_keeps_all_bytes_around_it(data: bytes, draw: st.DataObject) -> None:
    text = decode(data)
    normal = text.normal
    assume(normal)
    start = draw.draw(st.integers(0, len(normal) - 1))
    old = normal[start : draw.draw(st.integers(start + 1, len(normal)))]
    new = draw.draw(st.sampled_from(["", "x", "x\ny", old + "x", "x" + old, old[:1] + "z"]))
    found = find(normal, old)
    assume(len(found.starts) == 1 and not found.folded)
    after = splice(text, found, old, new)
    offsets = Offsets(text.raw)
    before_it = text.bom + text.encode(text.raw[: offsets[found.starts[0]]])
    behind_it = text.encode(text.raw[offsets[found.starts[0] + len(old)] :])
    assert after.startswith(before_it)
    assert after.endswith(behind_it)
    middle = after[len(before_it) : len(after) - len(behind_it)].decode(text.encoding, "surrogateescape")
    assert middle.replace("\r\n", "\n") == new.replace("\r\n", "\n")


@given(contents, st.data())
def test_replacing_everywhere_and_back_gives_the_same_bytes(data: bytes, draw: st.DataObject) -> None:
    text = decode(data)
    normal = text.normal
    assume(normal)
    old = draw.draw(st.sampled_from(sorted(set(normal) - {"\n", "\r"}) or ["\0"]))
    unused = "Ω" if text.encoding.startswith("utf") else "~"
    assume(old in normal and unused not in normal and unused != old)
    assume(text.encoding.startswith("utf") or old.isascii())  # the encoding must still be seen in between
    assume(not 0xDC80 <= ord(old) <= 0xDCFF)
    there = decode(splice(text, find(normal, old), old, unused))
    assert there.normal == normal.replace(old, unused)
    assert splice(there, find(there.normal, unused), unused, old) == data


@given(st.sampled_from(["\n", "\r\n"]), st.lists(st.text("abc", max_size=3), min_size=2, max_size=8), st.data())
def test_new_lines_end_like_the_lines_that_they_replace(ending: str, lines: list[str], draw: st.DataObject) -> None:
    raw = ending.join(lines)
    text = Text(raw, "utf-8")
    after = splice(text, find(text.normal, text.normal), text.normal, "p\nq\n" + text.normal + "\nr")
    assert after == f"p{ending}q{ending}{raw}{ending}r".encode()


def context(root: Path) -> ToolContext:
    return ToolContext(agent="a~1", cwd=root, root=root, files=FileState(), shell=KeeperShell())


@settings(max_examples=25, deadline=None)
@given(contents.filter(lambda data: b"\0" not in data), st.sampled_from([0o600, 0o644, 0o755, 0o440]), st.booleans())
def test_on_disk_the_file_changes_as_asked_and_nothing_else_does(data: bytes, mode: int, by_link: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        (root / "real").mkdir()
        file = root / "real" / "file.txt"
        file.write_bytes(data + b"\nNEEDLE\n")
        file.chmod(mode)
        (root / "link.txt").symlink_to(file)
        (root / "neighbour").write_bytes(b"untouched")
        ctx = context(root)
        path = str(root / "link.txt" if by_link else file)

        async def scene() -> None:
            await Read().call(ReadInput(file_path=path), ctx, lambda _: None)
            edit = EditInput(file_path=path, old_string="NEEDLE", new_string="thread")
            await Edit().call(edit, ctx, lambda _: None)

        if is_binary(data + b"\nNEEDLE\n"):
            with pytest.raises(ToolError, match="binary"):
                asyncio.run(scene())
            assert file.read_bytes() == data + b"\nNEEDLE\n"
        else:
            asyncio.run(scene())
            assert file.read_bytes() == data + b"\nthread\n"
        assert stat.S_IMODE(file.stat().st_mode) == mode
        assert (root / "link.txt").is_symlink()
        assert (root / "neighbour").read_bytes() == b"untouched"
        assert sorted(p.name for p in root.rglob("*")) == ["file.txt", "link.txt", "neighbour", "real"]


def in_place(file: Path, data: bytes) -> None:
    """The same file, the same time: only the bytes tell."""
    stamp = file.stat().st_mtime_ns
    file.write_bytes(data)
    os.utime(file, ns=(stamp, stamp))


def by_rename(file: Path, data: bytes) -> None:
    file.with_suffix(".new").write_bytes(data)
    file.with_suffix(".new").replace(file)


def by_link(file: Path, data: bytes) -> None:
    file.with_suffix(".target").write_bytes(data)
    file.unlink()
    file.symlink_to(file.with_suffix(".target"))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(ENCODINGS)),
    texts,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([in_place, by_rename, by_link]),
    st.sampled_from(["flip", "append", "empty"]),
    st.booleans(),
    st.booleans(),
)
def test_what_somebody_else_writes_after_the_read_up_to_the_change_itself_is_never_lost(
    kind: str, text: str, ending: str, how: Callable[[Path, bytes], None], what: str, whole: bool, late: bool
) -> None:
    bom, encoding = ENCODINGS[kind]
    before = bom + f"{text}{ending}NEEDLE{ending}".encode(encoding)
    theirs = {"flip": before[:-1] + bytes([before[-1] ^ 1]), "append": before + b"x\0", "empty": b""}[what]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        root = Path(os.path.realpath(folder))
        file = root / "file.txt"
        file.write_bytes(before)
        ctx = context(root)

        waiting = [how]

        def meddled(one: Path, other: Path) -> bool:
            if waiting:
                waiting.pop()(file, theirs)
            return exchange(one, other)

        patch.setattr("retinue.tools.files.disk.exchange", meddled)

        async def scene() -> None:
            await Read().call(ReadInput(file_path="file.txt"), ctx, lambda _: None)
            if not late:
                waiting.pop()(file, theirs)
            if whole and what != "empty":  # an empty file holds nothing that could be lost
                await Write().call(WriteInput(file_path="file.txt", content="ours"), ctx, lambda _: None)
            else:
                edit = EditInput(file_path="file.txt", old_string="NEEDLE", new_string="thread")
                await Edit().call(edit, ctx, lambda _: None)

        refused = "was changed by somebody else just now" if late else r"has changed since|not been read yet"
        with pytest.raises(ToolError, match=refused):
            asyncio.run(scene())
        assert file.read_bytes() == theirs
        assert file.is_symlink() == (how is by_link)
        assert not [name for name in os.listdir(root) if name.endswith(".tmp")]


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.sampled_from(sorted(ENCODINGS)), texts)
def test_a_write_keeps_the_mark_and_the_encoding_that_it_names(content: str, kind: str, old: str) -> None:
    bom, encoding = ENCODINGS[kind]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(os.path.realpath(folder), "file.txt")
        file.write_bytes(bom + old.encode(encoding))
        ctx = context(file.parent)

        async def scene() -> None:
            await Read().call(ReadInput(file_path="file.txt"), ctx, lambda _: None)
            await Write().call(WriteInput(file_path="file.txt", content=content), ctx, lambda _: None)

        assume(not is_binary(bom + old.encode(encoding)))
        asyncio.run(scene())
        assert file.read_bytes() == bom + (content.removeprefix("\ufeff") if bom else content).encode(encoding)


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=100), st.sampled_from([0o600, 0o755]))
def test_a_write_puts_down_exactly_what_it_was_given(content: str, mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        file = root / "file.txt"
        file.write_bytes(b"old\r\n")
        file.chmod(mode)
        ctx = context(root)

        async def scene() -> None:
            await Read().call(ReadInput(file_path="file.txt"), ctx, lambda _: None)
            await Write().call(WriteInput(file_path="file.txt", content=content), ctx, lambda _: None)
            await Write().call(WriteInput(file_path="new/deep/er.txt", content=content), ctx, lambda _: None)

        asyncio.run(scene())
        assert file.read_bytes() == (root / "new" / "deep" / "er.txt").read_bytes() == content.encode()
        assert stat.S_IMODE(file.stat().st_mode) == mode
        assert sorted(p.name for p in root.iterdir()) == ["file.txt", "new"]
