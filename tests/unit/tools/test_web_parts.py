"""The cache of pages, bodies that are unpacked, and what is taken for text."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncGenerator

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.web.body import Inflater, TooLarge, read_body
from retinue.tools.web.cache import TimedCache
from retinue.tools.web.convert import to_markdown
from retinue.tools.web.markdown import decoded, is_html, is_text


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def cache(clock: Clock, *, entries: int = 3, size: int = 10) -> TimedCache[str]:
    return TimedCache(clock, ttl_s=900, max_entries=entries, max_size=size, size=len)


def test_what_was_kept_is_forgotten_after_its_time() -> None:
    clock = Clock()
    held = cache(clock)
    held.put("a", "x")
    clock.now = 899
    assert held.get("a") == "x"
    clock.now = 900
    assert held.get("a") is None
    assert len(held) == 0


def test_the_oldest_goes_first_when_there_is_too_much() -> None:
    held = cache(Clock())
    for key in "abcd":
        held.put(key, "x")
    assert [held.get(key) for key in "abcd"] == [None, "x", "x", "x"]
    held.put("e", "y" * 9)
    assert [held.get(key) for key in "bcde"] == [None, None, "x", "y" * 9]


def test_what_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    held = cache(Clock())
    held.put("a", "x")
    held.put("b", "y" * 11)
    assert (held.get("a"), held.get("b")) == ("x", None)
    held.put("a", "y" * 11)
    assert held.get("a") is None


PLAIN = b"some words " * 100


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", PLAIN),
        ("identity", PLAIN),
        ("gzip", gzip.compress(PLAIN)),
        ("x-gzip", gzip.compress(PLAIN)),
        ("GZIP", gzip.compress(PLAIN[:50]) + gzip.compress(PLAIN[50:])),
        ("deflate", zlib.compress(PLAIN)),
        ("deflate", zlib.compress(PLAIN)[2:-4]),
    ],
)
async def test_each_encoding_that_is_asked_for_is_undone_however_it_is_cut(encoding: str, data: bytes) -> None:
    for size in (1, 7, len(data)):
        assert await read_body(pieces(data, size), encoding, len(PLAIN)) == PLAIN


async def test_a_bomb_is_given_up_at_the_limit() -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024))
    inflater = Inflater("gzip", 1_000_000)
    with pytest.raises(TooLarge, match="1,000,000"):
        inflater.feed(bomb)


async def test_one_byte_more_than_the_limit_is_too_large() -> None:
    assert await read_body(pieces(PLAIN, 10), "", len(PLAIN)) == PLAIN
    with pytest.raises(TooLarge):
        await read_body(pieces(PLAIN, 10), "", len(PLAIN) - 1)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(ToolError, match="not asked for"):
        Inflater(encoding, 100)


def test_damaged_data_is_an_error_of_the_server() -> None:
    with pytest.raises(ToolError, match="damaged"):
        Inflater("gzip", 100).feed(b"this is no gzip at all")


async def pieces(data: bytes, size: int) -> AsyncGenerator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def test_a_page_becomes_markdown_with_whole_links_and_without_what_nobody_sees() -> None:
    html = b"""<!doctype html><head><title>Title</title><style>b{}</style></head><body>
    <nav>menu</nav><h1>Head</h1><p>Some <b>bold</b> <a href="../x">link</a> <a href="javascript:x()">bad</a></p>
    <ul><li>one<li>two</ul><pre><code>a = 1
    b = 2</code></pre><table><tr><th>A<th>B<tr><td>1<td>2</table><script>alert(1)</script></body>"""
    text = to_markdown(html, "https://example.com/a/b")
    assert text.startswith("# Title\n\n# Head")
    assert "Some **bold** [link](https://example.com/x) bad" in text
    assert "- one\n- two" in text
    assert "```\na = 1\n    b = 2\n```" in text
    assert "| A | B |\n| --- | --- |\n| 1 | 2 |" in text
    assert not any(word in text for word in ("menu", "alert", "javascript", "b{}"))


def test_the_charset_of_the_answer_and_that_of_the_page_are_heeded() -> None:
    assert "grün" in to_markdown("<p>grün</p>".encode("cp1252"), charset="cp1252")
    page = '<html><head><meta charset="iso-8859-1"></head><body><p>grün</p></body></html>'
    assert "grün" in to_markdown(page.encode("latin-1"))


def test_html_nested_beyond_reason_becomes_plain_text() -> None:
    assert "deep" in to_markdown(b"<div>" * 230 + b"deep")
    assert to_markdown(b"<b><i>" * 20_000) == ""


@pytest.mark.parametrize(
    ("content_type", "body", "text", "html"),
    [
        ("text/html", b"x", True, True),
        ("application/xhtml+xml", b"x", True, True),
        ("text/markdown", b"x", True, False),
        ("application/json", b"{}", True, False),
        ("application/problem+json", b"{}", True, False),
        ("image/svg+xml", b"<svg/>", True, False),
        ("application/pdf", b"%PDF", False, False),
        ("image/png", b"\x89PNG", False, False),
        ("", b"<!DOCTYPE html><p>", True, True),
        ("", b"words", True, False),
        ("", b"\0\1\2", False, False),
        ("application/octet-stream", b"words", True, False),
        ("application/octet-stream", b"\xff\xfe\xfa", False, False),
    ],
)
def test_the_kind_is_what_the_server_says_or_else_how_it_reads(
    content_type: str, body: bytes, text: bool, html: bool
) -> None:
    assert is_text(content_type, body) is text
    assert is_html(content_type, body) is html


@pytest.mark.parametrize("charset", [None, "utf-8", "no-such", "base64", "undefined", "\0"])
def test_bytes_become_text_whatever_charset_is_named(charset: str | None) -> None:
    assert decoded(b"words", charset) == "words"
