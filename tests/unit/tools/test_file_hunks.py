"""What changed in a file, as people read it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.tools.files.hunks import CONTEXT, MAX_CHARS, MAX_LINES, Hunk, hunks

lines = st.lists(st.sampled_from(["a", "b", "c", "", " d"]), max_size=40)


def applied(before: list[str], found: tuple[Hunk, ...]) -> list[str]:
    """What a patch makes of the old lines; every line of it must fit."""
    result: list[str] = []
    at = 0
    for hunk in found:
        result += before[at : hunk.old_start - 1]
        at = hunk.old_start - 1
        assert len(result) == hunk.new_start - 1
        for line in hunk.lines:
            if line[0] != "+":
                assert before[at] == line[1:]
                at += 1
            if line[0] != "-":
                result.append(line[1:])
        assert at == hunk.old_start - 1 + hunk.old_lines
        assert len(result) == hunk.new_start - 1 + hunk.new_lines
    return result + before[at:]


@given(lines, lines)
def test_applied_to_the_old_text_they_give_the_new_one(before: list[str], after: list[str]) -> None:
    found = hunks("".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after))
    assert applied(before, found) == after


def test_nothing_changed_is_nothing() -> None:
    assert hunks("a\nb\n", "a\nb\n") == ()
    assert hunks("a\r\nb\n", "a\nb\n") == ()


def test_changes_far_apart_are_hunks_of_their_own_with_lines_around() -> None:
    before = [f"line {n}" for n in range(1, 51)]
    after = ["LINE 10" if n == 9 else "LINE 40" if n == 39 else line for n, line in enumerate(before)]
    first, second = hunks("\n".join(before), "\n".join(after))
    assert (first.old_start, first.old_lines, first.new_start, first.new_lines) == (7, 7, 7, 7)
    assert first.lines[CONTEXT : CONTEXT + 2] == ("-line 10", "+LINE 10")
    assert second.old_start == 37


def test_a_large_file_changed_in_many_places_is_compared_line_by_line() -> None:
    before = ["x"] * 30_000
    after = ["y" if n % 10_000 == 5_000 else "x" for n in range(30_000)]
    found = hunks("\n".join(before), "\n".join(after))
    assert [hunk.old_start + CONTEXT for hunk in found] == [5_001, 15_001, 25_001]
    assert applied(before, found) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["x"] * 1_000, ["x", "z"] * 500),
        (["x"] * 20_000, ["x", "z"] * 20_000),
        ([f"{n % 100}" for n in range(1_000)], [f"{n % 101}" for n in range(1_000)]),
        ([f"{n}" for n in range(1_000)], [f"{n}" for n in reversed(range(1_000))]),
        (["x"] * 9_000_000, ["y"]),
    ],
)
def test_texts_that_are_made_to_be_compared_for_long_are_not(before: list[str], after: list[str]) -> None:
    start = time.process_time()
    found = hunks("\n".join(before), "\n".join(after))
    assert time.process_time() - start < 5
    assert bool(found) == (len(before) < 1_000_000)


def test_what_is_too_much_is_left_out_and_counted() -> None:
    (found,) = hunks("\n".join("a" * 5_000), "b\n" * 3_000)
    assert len(found.lines) == MAX_LINES
    assert found.more > 0
    (long,) = hunks("a", "b" * 1_000)
    assert all(len(line) <= MAX_CHARS + 1 for line in long.lines)
