"""The JSON Schema says what the loader says, as far as a schema can."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from retinue.orchestrator.spec import spec_schema, starter_spec

ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(spec_schema())
SMALL = "version: 1\nname: small\nmodel: script:s.yaml\nagents: {coder: {}}\n"


def errors(text: str) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(YAML(typ="safe", pure=True).load(text))]


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(spec_schema())


def test_every_key_says_what_it_is_for() -> None:
    schema = spec_schema()
    parts = [schema, *schema["$defs"].values()]
    silent = [
        key for part in parts for key, about in part["properties"].items() if not about.get("description", "").strip()
    ]
    assert silent == []
    assert all(part["additionalProperties"] is False for part in parts)


@pytest.mark.parametrize(
    "text",
    [
        starter_spec(),
        *(path.read_text() for path in sorted((ROOT / "configs" / "teams").glob("*.yaml"))),
        SMALL + "limits: {wall: 90, turns: '${TURNS:-5}'}\nmerge: {strategy: '${S:-merge}', verify: [a, b]}\n",
        SMALL + "tasks: [{subject: x, done_when: {command: make, timeout: 1h}}]\n",
    ],
)
def test_a_good_spec_follows_the_schema(text: str) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SMALL + "limit: {}\n", "$"),
        (SMALL + "hooks: {}\n", "$"),
        (SMALL + "limits: {usd: five}\n", "$.limits.usd"),
        (SMALL + "permissions: {mode: planning}\n", "$.permissions.mode"),
        (SMALL.replace("script:s.yaml", "claude-sonnet-5-5"), "$.model"),
        (SMALL.replace("coder: {}", "Coder: {}"), "$.agents"),
        (SMALL.replace("coder: {}", "coder: {replicas: 0}"), "$.agents.coder.replicas"),
        (SMALL.replace("coder: {}", "coder: {display: tmux}"), "$.agents.coder.display"),
        (SMALL + "tasks: [{id: a}]\n", "$.tasks[0]"),
    ],
)
def test_a_bad_spec_is_marked_at_its_place(text: str, place: str) -> None:
    assert errors(text) == [place]
