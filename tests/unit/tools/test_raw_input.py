"""Tools whose schema is not ours: the same pipeline, checked by JSON Schema."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from retinue.tools.base import OnProgress, RawInput, Tool, ToolContext, ToolResult
from retinue.tools.registry.pool import assemble
from support.calls import Said, call, pipeline, run

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "open": {"type": "boolean"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "model_config": {"type": "string"},
    },
    "required": ["title"],
    "additionalProperties": False,
}


class Foreign(Tool[RawInput, Said]):
    name = "mcp__tracker__create"

    def __init__(self, schema: dict[str, JsonValue]) -> None:
        self._schema = schema

    def description(self) -> str:
        return "makes an issue"

    def json_schema(self) -> dict[str, JsonValue]:
        return self._schema

    async def call(self, args: RawInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text=repr(args.as_object())))

    def to_content(self, data: Said) -> str:
        return data.text


async def said(schema: dict[str, JsonValue] | None = None, **values: object) -> str:
    end = await run(pipeline(Foreign(schema or SCHEMA)), call("mcp__tracker__create", **values))
    assert end.is_error == end.content.startswith("<tool_use_error>InputValidationError")
    return end.content


async def test_input_that_fits_arrives_as_it_was_written() -> None:
    assert await said(title="a", labels=["x"]) == "{'title': 'a', 'labels': ['x']}"
    assert await said(title="a", model_config="b") == "{'title': 'a', 'model_config': 'b'}"


async def test_text_that_is_a_number_is_taken_as_one_only_where_one_belongs() -> None:
    assert await said(title="5", count="5", share="0.5", open="true") == (
        "{'title': '5', 'count': 5, 'share': 0.5, 'open': True}"
    )


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, "- input: 'title' is a required property"),
        ({"title": "a", "count": 0}, "- count: 0 is less than the minimum of 1"),
        ({"title": "a", "count": "many"}, "- count: 'many' is not of type 'integer'"),
        ({"title": "a", "labels": [1]}, "- labels.0: 1 is not of type 'string'"),
        ({"title": "a", "other": 1}, "- input: Additional properties are not allowed ('other' was unexpected)"),
    ],
)
async def test_what_does_not_fit_is_said_parameter_by_parameter(values: dict[str, object], line: str) -> None:
    assert line in (await said(**values)).splitlines()[1]


async def test_a_schema_that_is_none_is_an_error_of_its_server() -> None:
    assert "the schema of mcp__tracker__create is itself wrong" in await said({"type": 5}, title="a")


async def test_many_problems_are_cut() -> None:
    text = await said(title=1, count=0, labels=list(range(20)))
    assert len(text.splitlines()) == 12
    assert text.splitlines()[-1].startswith("- and more")


def test_the_model_is_told_the_foreign_schema() -> None:
    (spec,) = assemble([], [Foreign(SCHEMA)]).specs()
    assert (spec.input_schema, spec.description) == (SCHEMA, "makes an issue")
