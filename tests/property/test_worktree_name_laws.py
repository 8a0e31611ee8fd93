"""Every name that an agent may give a worktree makes one folder and one branch, and no two names the same."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from retinue.orchestrator.runtime.beside_scripts import Beside
from retinue.orchestrator.workspaces.names import agent_branch, is_branch
from retinue.tools.system.worktrees import is_name

FOLDER = Path("/run/beside/ada~1")
PARTS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,8}", fullmatch=True)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join).filter(is_name)
ANYTHING = st.text("ab/._-+~ ^:*?[\\@{\n1", max_size=70)


@given(NAMES, NAMES)
def test_a_name_is_a_folder_and_a_branch_of_its_own(name: str, other: str) -> None:
    made = Beside.of(FOLDER, "run-1", "ada~1", name)
    assert made.path.parent == FOLDER
    assert made.path.name not in ("", ".", "..")
    assert is_branch(made.branch)
    assert not made.branch.startswith(f"{agent_branch('run-1', 'ada~1')}/")
    assert (Beside.of(FOLDER, "run-1", "ada~1", other) == made) == (other == name)


@given(ANYTHING)
def test_whatever_is_taken_for_a_name_makes_a_branch(text: str) -> None:
    assert not is_name(text) or is_branch(Beside.of(FOLDER, "run-1", "ada~1", text).branch)


@given(NAMES)
def test_what_lies_in_the_folder_is_found_again_by_its_name(name: str) -> None:
    flat = Beside.of(FOLDER, "run-1", "ada~1", name)
    assert is_name(flat.name.replace("+", "/"))
    assert Beside.of(FOLDER, "run-1", "ada~1", flat.name) == flat
