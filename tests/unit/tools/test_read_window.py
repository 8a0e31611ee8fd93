"""Which lines of a text are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.tools.errors import ToolError
from retinue.tools.files.codec import is_binary
from retinue.tools.files.read.window import lines_of, numbered, window


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\n\n", ["a", ""]), ("a\x0cb\u2028c", ["a\x0cb\u2028c"])],
)
def test_only_a_newline_ends_a_line(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


@given(st.lists(st.text("ab", max_size=3), max_size=20), st.integers(0, 25), st.integers(1, 25))
def test_a_window_is_a_slice(lines: list[str], offset: int, limit: int) -> None:
    first = max(offset, 1)
    view = window(lines, offset, limit)
    assert list(view.lines) == lines[first - 1 : first - 1 + limit]
    assert (view.first, view.total, view.cut) == (first, len(lines), False)
    assert view.whole == (first == 1 and limit >= len(lines))


def test_pages_follow_one_another_without_gap_or_overlap() -> None:
    lines = [f"{n} " + "x" * 1_000 for n in range(500)]
    got: list[str] = []
    while len(got) < len(lines):
        view = window(lines, len(got) + 1, None)
        got += view.lines
    assert got == lines


def test_a_line_too_long_for_any_result_names_the_way_out() -> None:
    with pytest.raises(ToolError, match="Use Grep"):
        window(["x" * 100_001], None, 1)


def test_a_long_line_is_cut_and_the_window_is_not_the_whole() -> None:
    view = window(["x" * 2_001, "y"], None, None)
    assert view.lines == ("x" * 2_000 + "… [1 more characters]", "y")
    assert (view.shortened, view.whole) == (1, False)


def test_numbers_start_where_the_window_does() -> None:
    assert numbered(["a", "b"], 9) == "9\ta\n10\tb"


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"text \x1b[31m\t\r\n", False),
        ("漢字".encode(), False),
        (b"\xff\xfea\0", False),
        (b"\xff\xfea\0b", True),
        (b"\xff\xfe\0\0a\0\0\0", True),
        (b"a\0b", True),
        (bytes(range(1, 9)), True),
    ],
)
def test_binary_is_told_from_text(data: bytes, binary: bool) -> None:
    assert is_binary(data) is binary
