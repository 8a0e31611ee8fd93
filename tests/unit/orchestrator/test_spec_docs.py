"""The reference of the spec: every key is in it, its defaults are true, and its examples load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retinue.orchestrator.spec import NOT_SUPPORTED_YET, TeamSpec, load_spec_text
from retinue.orchestrator.spec.part import SpecPart
from retinue.orchestrator.spec.structure import part_at

TEXT = (Path(__file__).parents[3] / "docs" / "spec.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
ROWS = dict(re.findall(r"^\| `([\w.\[\]]+)` \| [^|]+ \| ([^|]+) \|", TEXT, re.MULTILINE))
AROUND = {
    "version": "version: 1",
    "name": "name: x",
    "model": "model: script:s.yaml",
    "agents": "agents: {coder: {prompt: hi}}",
}
SMALL = "\n".join((*AROUND.values(), "tasks: [{subject: x, done_when: make}]", ""))
NEEDED = {
    "web.search.endpoint.": "web: {search: {endpoint: {url: https://x.example.org}}}\n",
    "lsp.NAME.": "lsp: {coder: {command: x, extension_to_language: {.x: x}}}\n",
}
SAID_ONCE = ("agents.NAME.model", "small_model")


def keys_of(part: type[SpecPart], path: tuple[str | int, ...] = (), shown: str = "") -> list[str]:
    """The paths of all keys as the reference writes them. All models are as `model`, said once."""
    keys: list[str] = []
    for key in part.model_fields:
        here = f"{shown}.{key}" if shown else key
        keys.append(here)
        if here == "agents":
            keys += keys_of(part_at(("agents", "x")) or TeamSpec, ("agents", "x"), "agents.NAME")
        elif here == "tasks":
            keys += keys_of(part_at(("tasks", 0)) or TeamSpec, ("tasks", 0), "tasks[]")
        elif here == "lsp":
            keys += keys_of(part_at(("lsp", "x")) or TeamSpec, ("lsp", "x"), "lsp.NAME")
        elif here not in SAID_ONCE and (inner := part_at((*path, key))) is not None:
            keys += keys_of(inner, (*path, key), here)
    return keys


def with_what_is_missing(example: str) -> str:
    given = set(re.findall(r"^(\w+):", example, re.MULTILINE))
    return "\n".join((*(line for key, line in AROUND.items() if key not in given), example))


def test_every_key_has_its_row_and_no_row_is_without_a_key() -> None:
    assert sorted(ROWS) == sorted(keys_of(TeamSpec))


@pytest.mark.parametrize(
    ("key", "default"), [(key, found[1]) for key, cell in ROWS.items() if (found := re.match(r"`(.*)` ?$", cell))]
)
def test_a_default_in_the_reference_is_the_default(key: str, default: str) -> None:
    path = key.replace("NAME", "coder").replace("tasks[]", "tasks[0]")
    if key == "tasks":
        assert (default, TeamSpec.model_fields["tasks"].default) == ("[]", ())
        return
    text = SMALL.replace("done_when: make", "done_when: {command: make}")
    text += next((lines for place, lines in NEEDED.items() if key.startswith(place)), "")
    as_written = load_spec_text(text, env={}).spec
    assert load_spec_text(text, env={}, overrides=[f"{path}={default}"]).spec == as_written


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("\n")[0])
def test_an_example_of_the_reference_loads(example: str) -> None:
    assert load_spec_text(with_what_is_missing(example), env={}).warnings == ()


def test_the_reference_names_the_tools_and_everything_that_does_not_work_yet() -> None:
    assert "Tools: all that `retinue tools list` shows" in TEXT
    unsaid = [
        row.part
        for row in NOT_SUPPORTED_YET
        if row.match in ("key", "value") and row.paths[0].split(".")[-1] not in TEXT.split("## Not supported yet")[1]
    ]
    assert unsaid == []
