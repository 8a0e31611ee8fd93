"""The JSON Schema of a spec, for editors: every key with its meaning, its default and what it may hold."""

from __future__ import annotations

from pydantic import JsonValue

from retinue.orchestrator.spec.model import TeamSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def spec_schema() -> dict[str, JsonValue]:
    """What is not supported yet is not in it, so that an editor marks it as the loader does."""
    schema: dict[str, JsonValue] = {"$schema": DIALECT, **_untitled_mapping(TeamSpec.model_json_schema())}
    schema["title"] = "retinue team spec, version 1"
    return schema


def _untitled(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _untitled_mapping(value)
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    return value


def _untitled_mapping(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Generated titles only repeat the key in other letters."""
    return {key: _untitled(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
