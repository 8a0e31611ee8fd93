"""Every bad spec of the case files gets exactly the text that stands beside it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from retinue.orchestrator.spec import NOT_SUPPORTED_YET, TOOLS, InvalidSpec, NotYet, load_spec, load_spec_text
from retinue.orchestrator.spec.problems import SHOWN_AT_MOST
from retinue.tools.errors import SpecError

CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted((Path(__file__).parent / "spec_cases").glob("*.yaml"))
    for case in YAML(typ="safe", pure=True).load(file)
]
SMALL = """\
version: 1
name: small
model: script:s.yaml
agents:
  coder: {prompt: hi}
"""


@pytest.mark.parametrize("case", CASES)
def test_a_bad_spec_is_refused_with_exactly_this_text(case: dict) -> None:
    with pytest.raises(SpecError) as refused:
        load_spec_text(
            case["spec"], "team.yaml", env=case.get("env", {}), overrides=case.get("set", ()), model=case.get("model")
        )
    assert str(refused.value) == case["error"].rstrip("\n").replace("ALL_TOOLS", ", ".join(TOOLS))


def test_there_are_at_least_forty_five_cases_with_names_of_their_own() -> None:
    names = [case.id for case in CASES]
    assert len(names) == len(set(names)) >= 45


@pytest.mark.parametrize("row", NOT_SUPPORTED_YET, ids=lambda row: row.part)
def test_everything_that_is_not_supported_yet_is_refused_by_name(row: NotYet) -> None:
    path, value = row.example
    with pytest.raises(InvalidSpec) as refused:
        load_spec_text(SMALL, "team.yaml", env={}, overrides=[f"{path}={json.dumps(value)}"])
    (problem,) = refused.value.problems
    assert problem.kind == "not_supported"
    assert "not supported yet" in problem.text
    assert problem.text.endswith(row.remedy)


def test_a_long_list_is_cut_and_says_how_much_is_left_out() -> None:
    text = SMALL + "".join(f"key{n}: 1\n" for n in range(SHOWN_AT_MOST + 7))
    with pytest.raises(InvalidSpec) as refused:
        load_spec_text(text, "team.yaml", env={})
    lines = str(refused.value).splitlines()
    assert lines[0] == "57 problems in team.yaml"
    assert lines[-1] == "… and 7 more"
    assert len(lines) == SHOWN_AT_MOST + 2


def test_the_error_crosses_processes_with_its_text_and_its_problems() -> None:
    with pytest.raises(InvalidSpec) as refused:
        load_spec_text("version: 1\n", "team.yaml", env={})
    copy = pickle.loads(pickle.dumps(refused.value))
    assert str(copy) == str(refused.value)
    assert copy.problems == refused.value.problems
    assert copy.exit_code == 2


def test_a_missing_file_names_the_way_to_start(tmp_path: Path) -> None:
    missing = tmp_path / "no.yaml"
    with pytest.raises(SpecError) as refused:
        load_spec(missing, env={})
    assert str(refused.value) == (
        f"1 problem in {missing}\n{missing}: no such file; `retinue init` writes a spec to start from"
    )


def test_a_folder_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_spec(tmp_path, env={})


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(SpecError, match="not UTF-8: byte 10 cannot be read; save the file as UTF-8"):
        load_spec(path, env={})


def test_a_spec_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(SpecError, match="longer than 1,000,000 characters"):
        load_spec_text("#" * 1_000_001, "team.yaml", env={})


def test_no_error_shows_the_value_of_a_secret() -> None:
    env = {"API_TOKEN": "s3cret-s3cret-s3cret", "PLAIN": "s3cret-s3cret-s3cret"}
    text = SMALL + 'limits: {turns: "${PLAIN}", wall: "${API_TOKEN}"}\nenv: {"${X}": "${API_TOKEN}", B: 5}\n'
    with pytest.raises(SpecError) as refused:
        load_spec_text(text, "team.yaml", env=env)
    assert "s3cret" not in str(refused.value)
    assert "4 problems" in str(refused.value)
