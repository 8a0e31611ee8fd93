"""Input for a schema that is not ours, checked by JSON Schema: as lax as our own models are where that is safe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from retinue.tools.base import AnyTool, RawInput
from retinue.tools.text import for_model, one_line

_SHOWN_PROBLEMS = 10
_INTEGER = re.compile(r"[+-]?\d{1,18}\Z")
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,3})?\Z")
_BOOLEANS = {"true": True, "false": False}


def parse_raw(tool: AnyTool, values: Mapping[str, JsonValue]) -> RawInput | list[str]:
    """The input, or what is wrong with it, line by line."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    schema = tool.json_schema()
    given = coerced(values, schema)
    kind = validator_for(cast("Mapping[str, object]", schema))
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return [f"- the schema of {tool.name} is itself wrong: {for_model(one_line(error.message))}"]
    problems = list(kind(schema).iter_errors(given))[: _SHOWN_PROBLEMS + 1]
    if not problems:
        return cast(RawInput, tool.Input.model_validate(given))
    lines = [
        f"- {'.'.join(str(part) for part in problem.absolute_path) or 'input'}: {for_model(one_line(problem.message))}"
        for problem in problems[:_SHOWN_PROBLEMS]
    ]
    return lines if len(problems) <= _SHOWN_PROBLEMS else [*lines, "- and more"]


def coerced(values: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Text that is a number or truth value becomes one where a parameter takes nothing else."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {name: _coerced(value, known.get(name)) for name, value in values.items()}


def _coerced(value: JsonValue, schema: JsonValue) -> JsonValue:
    if not isinstance(value, str) or not isinstance(schema, dict):
        return value
    match schema.get("type"):
        case "integer" if _INTEGER.match(value):
            return int(value)
        case "number" if _NUMBER.match(value):
            return float(value) if not _INTEGER.match(value) else int(value)
        case "boolean" if value in _BOOLEANS:
            return _BOOLEANS[value]
        case _:
            return value
