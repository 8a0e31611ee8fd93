"""The file tools against what is known of their fields and limits, one row each."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from retinue.tools.base import READS, Tool, ToolData, ToolInput, Traits
from retinue.tools.files import disk, ripgrep
from retinue.tools.files.edit.constants import EditRefusal
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.glob.constants import MAX_FILES
from retinue.tools.files.glob.tool import Glob
from retinue.tools.files.grep.constants import DEFAULT_HEAD, MAX_COLUMNS
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.notebook_edit.constants import NotebookRefusal
from retinue.tools.files.notebook_edit.tool import NotebookEdit
from retinue.tools.files.read import constants as read
from retinue.tools.files.read.tool import Read
from retinue.tools.files.write.constants import WriteRefusal
from retinue.tools.files.write.tool import Write

FileTool = Tool[ToolInput, ToolData]
FILE = {"file_path": "a"}
EDIT = {**FILE, "old_string": "a", "new_string": "b"}
BOOK = {"notebook_path": "a.ipynb", "new_source": "x"}


@pytest.mark.parametrize(
    ("tool", "given", "field", "value"),
    [
        (Read(), FILE, "offset", None),
        (Read(), FILE, "limit", None),
        (Read(), FILE, "pages", None),
        (Read(), {**FILE, "offset": "5", "limit": "7"}, "offset", 5),
        (Read(), {**FILE, "offset": "5", "limit": "7"}, "limit", 7),
        (Read(), {**FILE, "offset": 0}, "offset", 0),
        (Read(), {**FILE, "pages": "1-5"}, "pages", "1-5"),
        (Edit(), EDIT, "replace_all", False),
        (Edit(), {**EDIT, "replace_all": "true"}, "replace_all", True),
        (Write(), {**FILE, "content": ""}, "content", ""),
        (NotebookEdit(), BOOK, "edit_mode", "replace"),
        (NotebookEdit(), BOOK, "cell_id", None),
        (NotebookEdit(), {**BOOK, "cell_type": "code"}, "cell_type", "code"),
        (Glob(), {"pattern": "*"}, "path", None),
        (Grep(), {"pattern": "x"}, "output_mode", "files_with_matches"),
        (Grep(), {"pattern": "x"}, "head_limit", 250),
        (Grep(), {"pattern": "x"}, "offset", 0),
        (Grep(), {"pattern": "x"}, "line_numbers", True),
        (Grep(), {"pattern": "x", "-n": "false"}, "line_numbers", False),
        (Grep(), {"pattern": "x", "-i": True}, "ignore_case", True),
        (Grep(), {"pattern": "x", "-A": "3"}, "after", 3),
        (Grep(), {"pattern": "x", "-B": 0}, "before", 0),
        (Grep(), {"pattern": "x", "-C": 2}, "around", 2),
        (Grep(), {"pattern": "x", "head_limit": "0"}, "head_limit", 0),
        (Grep(), {"pattern": "x", "multiline": 1}, "multiline", True),
    ],
)
def test_an_input_is_taken_with_its_default_and_from_text(
    tool: FileTool, given: dict[str, object], field: str, value: object
) -> None:
    assert getattr(tool.Input.model_validate(given), field) == value


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        (Read(), {}),
        (Read(), {**FILE, "limit": 0}),
        (Read(), {**FILE, "offset": -1}),
        (Read(), {**FILE, "offset": "x"}),
        (Read(), {**FILE, "page": "1"}),
        (Edit(), FILE),
        (Edit(), {**EDIT, "old_string": None}),
        (Edit(), {**EDIT, "replace_all": "perhaps"}),
        (Write(), FILE),
        (Write(), {**FILE, "content": 1}),
        (NotebookEdit(), {"notebook_path": "a.ipynb"}),
        (NotebookEdit(), {**BOOK, "cell_type": "raw"}),
        (NotebookEdit(), {**BOOK, "edit_mode": "move"}),
        (Glob(), {"path": "x"}),
        (Grep(), {}),
        (Grep(), {"pattern": "x", "output_mode": "json"}),
        (Grep(), {"pattern": "x", "-A": -1}),
        (Grep(), {"pattern": "x", "head_limit": -1}),
        (Grep(), {"pattern": "x", "-x": True}),
    ],
)
def test_an_input_that_does_not_fit_is_refused(tool: FileTool, given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        tool.Input.model_validate(given)


@pytest.mark.parametrize(
    ("limit", "known"),
    [
        (read.DEFAULT_LINES, 2_000),
        (read.LINE_CHARS, 2_000),
        (read.MAX_TOKENS, 25_000),
        (read.IMAGE_BYTES, 500_000),
        (read.PDF_WHOLE_PAGES, 10),
        (read.PDF_MOST_PAGES, 20),
        (read.NOTEBOOK_BYTES, 100 * 1024**2),
        (disk.MAX_EDIT_BYTES, 1024**3),
        (MAX_FILES, 100),
        (ripgrep.DEADLINE_S, 20.0),
        (DEFAULT_HEAD, 250),
        (MAX_COLUMNS, 500),
        (Grep.max_result_chars, 20_000),
        (Read.max_result_chars, None),
    ],
)
def test_a_limit_is_the_known_one(limit: object, known: object) -> None:
    assert limit == known


def test_codes_of_refusals_mean_the_same_in_all_tools_that_change_files() -> None:
    codes = [{code.name: int(code) for code in kind} for kind in (EditRefusal, WriteRefusal, NotebookRefusal)]
    merged: dict[str, int] = {}
    for each in codes:
        assert all(merged.setdefault(name, number) == number for name, number in each.items())
    assert codes[0] == {
        "SAME_TEXT": 1,
        "FORBIDDEN_PATH": 2,
        "EXISTS": 3,
        "MISSING": 4,
        "NOTEBOOK": 5,
        "UNREAD": 6,
        "CHANGED": 7,
        "NOT_FOUND": 8,
        "AMBIGUOUS": 9,
        "TOO_LARGE": 10,
    }


@pytest.mark.parametrize("tool", [Read(), Glob(), Grep()], ids=lambda tool: tool.name)
def test_what_looks_is_read_only_and_side_by_side(tool: FileTool) -> None:
    assert (
        tool.traits(tool.Input.model_validate({"file_path": "a"} if tool.name == "Read" else {"pattern": "a"})) == READS
    )


@pytest.mark.parametrize(
    ("tool", "given"),
    [(Edit(), EDIT), (Write(), {**FILE, "content": ""}), (NotebookEdit(), BOOK)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_changes_files_gets_the_strictest_traits(tool: FileTool, given: dict[str, object]) -> None:
    assert tool.traits(tool.Input.model_validate(given)) == Traits()


@pytest.mark.parametrize("tool", [Read(), Edit(), Write(), NotebookEdit(), Glob(), Grep()], ids=lambda tool: tool.name)
def test_only_searches_filter_what_they_find(tool: FileTool) -> None:
    assert tool.filters_reads == (tool.name in {"Glob", "Grep"})


def test_the_prompts_name_the_limits() -> None:
    for tool, words in (
        (Read(), ("2,000 lines", "2,000 characters", "25,000 tokens", "10 pages", "at most 20", "NotebookEdit")),
        (Glob(), ("100 files",)),
        (Grep(), ("250 entries", "500 characters", "multiline")),
        (Edit(), ("replace_all",)),
        (NotebookEdit(), ("cell-N", "insert", "delete")),
    ):
        assert [word for word in words if word not in tool.prompt()] == []
