"""How much of a result is shown, and where the rest goes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from retinue.tools.execution.calls import CallResult
from retinue.tools.results.limits import limit_of, preview_of, to_spill
from retinue.tools.results.store import ResultStore
from support.calls import result


@pytest.mark.parametrize(
    ("declared", "limit"), [(30_000, 30_000), (20_000, 20_000), (100_000, 50_000), (None, 400_000), (0, 0), (-1, 0)]
)
def test_a_tools_own_limit_is_clamped_and_none_is_bound_by_the_absolute_one(declared: int | None, limit: int) -> None:
    assert limit_of(declared) == limit


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([], set()),
        ([100, 100], set()),
        ([150, 100, 120], {0}),
        ([150, 160, 120], {0, 1}),
        ([150, 150], {0}),
        ([10, 10, 10, 400], {3}),
        ([9] * 30, set()),
    ],
    ids=["none", "fits", "largest", "two largest", "earlier of equals", "one", "small ones stay"],
)
def test_the_largest_results_of_a_message_go_first(sizes: list[int], chosen: set[int]) -> None:
    assert to_spill(sizes, kept=10, limit=260) == chosen


def test_what_stays_of_a_spilled_result_counts_too() -> None:
    assert to_spill([150, 140, 50], kept=100, limit=280) == {0, 1}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("one\ntwo\nthree", "one\ntwo"),
        ("x" * 20, "x" * 10),
        ("\u00e4" * 20, "\u00e4" * 5),
        ("a\n" + "x" * 20, "a\n" + "x" * 8),
    ],
    ids=["whole", "whole lines", "one long line", "whole characters", "a line break too early"],
)
def test_a_preview_is_the_head_in_whole_characters_and_lines(text: str, shown: str) -> None:
    assert preview_of(text, 10) == shown


def test_a_spilled_result_is_private_whole_and_named_by_its_call(tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "deep" / "results")
    fitted = store.fit("toolu_01", "x" * 5_000, 100)
    assert fitted.path == tmp_path / "deep" / "results" / "toolu_01.txt"
    assert fitted.path.read_text() == "x" * 5_000
    assert stat.S_IMODE(fitted.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(fitted.path.parent.stat().st_mode) == 0o700
    assert os.listdir(fitted.path.parent) == ["toolu_01.txt"]
    assert fitted.content == (
        "<persisted-output>\nThe output is too large to show (5,000 characters). "
        f"All of it is in: {fitted.path}\nRead parts of that file as needed.\n\n"
        f"Its beginning:\n{'x' * 2_000}\n</persisted-output>"
    )


def test_the_same_result_is_spilled_to_the_same_bytes(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    assert store.fit("a", "y" * 500, 100) == store.fit("a", "y" * 500, 100)


@pytest.mark.parametrize("call_id", ["../../etc/passwd", "/etc/passwd", "", ".", "a\0b", "x" * 300, "a/b", "\udcff"])
def test_an_id_cannot_lead_out_of_the_folder(tmp_path: Path, call_id: str) -> None:
    fitted = ResultStore(tmp_path).fit(call_id, "x" * 500, 100)
    assert fitted.path is not None
    assert fitted.path.parent == tmp_path
    assert fitted.path.read_text() == "x" * 500


def test_different_ids_get_different_files(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    assert len({store.path_of(name) for name in ("a/b", "a_b", "a\\b", "ab")}) == 4


def test_a_link_in_the_place_of_a_result_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "c1.txt").symlink_to(victim)
    ResultStore(folder).fit("c1", "x" * 500, 100)
    assert victim.read_text() == "mine"
    assert not (folder / "c1.txt").is_symlink()


def test_a_result_that_cannot_be_written_is_cut_and_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    fitted = ResultStore(blocked / "results").fit("c1", "x" * 5_000, 100)
    assert fitted.path is None
    assert "could not be written (Not a directory)" in fitted.content
    assert len(fitted.content) < 2_500


def test_secrets_reach_neither_the_file_nor_the_preview(tmp_path: Path) -> None:
    store = ResultStore(tmp_path, redact=lambda text: text.replace("hunter2", "[redacted]"))
    fitted = store.fit("c1", "key hunter2 " * 100, 100)
    assert fitted.path is not None
    assert "hunter2" not in fitted.path.read_text() + fitted.content


def test_output_cannot_pass_for_the_end_of_its_block(tmp_path: Path) -> None:
    fitted = ResultStore(tmp_path).fit("c1", "</persisted-output>\n" * 100, 100)
    assert fitted.content.count("</persisted-output>") == 1


def big(call_id: str, size: int, spilled_to: str | None = None) -> CallResult:
    return result(call_id, content="x" * size).model_copy(update={"spilled_to": spilled_to})


def test_all_results_of_a_message_fit_together(tmp_path: Path) -> None:
    results = [big("a", 90_000), big("b", 5), big("c", 80_000), big("d", 90_000)]
    fitted = ResultStore(tmp_path).fit_message(results)
    assert [r.spilled_to is not None for r in fitted] == [True, False, False, False]
    assert sum(len(r.content) for r in fitted) <= 200_000
    assert (fitted[1], fitted[2]) == (results[1], results[2])
    assert fitted == ResultStore(tmp_path).fit_message(results)


def test_what_was_put_aside_before_is_not_written_over(tmp_path: Path) -> None:
    kept = big("a", 4_000, spilled_to="/r/a.txt")
    fitted = ResultStore(tmp_path).fit_message([kept, big("b", 5_000)], limit=6_000)
    assert fitted[0] == kept
    assert fitted[1].spilled_to == str(tmp_path / "b.txt")
    assert os.listdir(tmp_path) == ["b.txt"]


def of_tool(name: str, call_id: str, size: int) -> CallResult:
    return big(call_id, size).model_copy(update={"name": name})


def test_what_a_tool_limits_itself_is_put_aside_last(tmp_path: Path) -> None:
    results = [of_tool("Read", "a", 90_000), of_tool("Grep", "b", 20_000), of_tool("Read", "c", 95_000)]
    fitted = ResultStore(tmp_path).fit_message(results, spared={"Read"})
    assert [r.spilled_to is not None for r in fitted] == [False, True, False]
    results.append(of_tool("Read", "d", 40_000))
    fitted = ResultStore(tmp_path).fit_message(results, spared={"Read"})
    assert [r.spilled_to is not None for r in fitted] == [False, True, True, False]
    assert sum(len(r.content) for r in fitted) <= 200_000
