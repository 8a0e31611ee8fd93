"""The JSON Schema of a spec, for editors: every key with its meaning, its default and what it may hold."""

from __future__ import annotations

from pydantic import JsonValue

from retinue.orchestrator.spec.model import TeamSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE: dict[str, JsonValue] = {"type": "string", "pattern": r"\$\{[A-Za-z_]"}
_NARROW = ("enum", "pattern", "minimum", "exclusiveMinimum")


def spec_schema() -> dict[str, JsonValue]:
    """What is not supported yet is not in it, so that an editor marks it as the loader does."""
    schema: dict[str, JsonValue] = {"$schema": DIALECT}
    schema.update({key: _for_editors(value) for key, value in TeamSpec.model_json_schema().items() if key != "title"})
    schema["title"] = "retinue team spec, version 1"
    return schema


def _for_editors(value: JsonValue) -> JsonValue:
    """Without the generated titles, which only repeat the key; with `${VAR}` wherever a value is narrower than text."""
    if isinstance(value, list):
        return [_for_editors(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {key: _for_editors(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    properties = result.get("properties")
    if isinstance(properties, dict):
        result["properties"] = {key: _or_variable(item) for key, item in properties.items()}
    return result


def _or_variable(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    choices = value.get("anyOf")
    if isinstance(choices, list):
        narrow = any(isinstance(choice, dict) and any(key in choice for key in _NARROW) for choice in choices)
        return {**value, "anyOf": [*choices, _VARIABLE]} if narrow else value
    if any(key in value for key in _NARROW):
        about = {key: value[key] for key in ("description", "default") if key in value}
        rest = {key: item for key, item in value.items() if key not in about}
        return {**about, "anyOf": [rest, _VARIABLE]}
    return value
