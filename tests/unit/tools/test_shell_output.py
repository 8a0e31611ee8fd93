"""The part of a command's output that is shown."""

from __future__ import annotations

from retinue.tools.shell.output import shown


def test_short_output_is_shown_whole() -> None:
    assert (shown(b"a\n", b"", 2, 10).text, shown(b"a\n", b"", 2, 10).truncated) == ("a\n", False)


def test_long_output_is_shown_at_both_ends_with_its_size_between() -> None:
    part = shown(b"h" * 100, b"", 100, 10)
    assert part.truncated
    assert part.text == "hhhhh\n[… the middle of 100 bytes of output is left out …]\nhhhhh"
    assert shown(b"h" * 8, b"t" * 8, 9_999, 10).text.startswith("hhhhh\n[… the middle of 9,999 bytes")
    assert shown(b"h" * 8, b"t" * 8, 9_999, 10).text.endswith("ttttt")


def test_colours_do_not_count() -> None:
    assert not shown(b"\x1b[31m" * 100 + b"x", b"", 501, 10).truncated
