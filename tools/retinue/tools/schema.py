"""JSON Schema for the wire, from pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, JsonValue


@cache
def input_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """JSON Schema for the wire: no titles, no null defaults, references inlined. Not to be changed: it is kept."""
    schema = model.model_json_schema()
    definitions: dict[str, JsonValue] = schema.pop("$defs", {})
    cleaned = _clean(schema, definitions)
    assert isinstance(cleaned, dict)
    return cleaned


def _clean(node: JsonValue, definitions: Mapping[str, JsonValue], *, properties: bool = False) -> JsonValue:
    if isinstance(node, list):
        return [_clean(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _clean(definitions[reference.rsplit("/", 1)[1]], definitions)
    kept = {
        key: _clean(value, definitions, properties=key == "properties")
        for key, value in node.items()
        if properties or not (key == "title" or (key == "default" and value is None))
    }
    return _drop_null_branch(kept)


def _drop_null_branch(node: dict[str, JsonValue]) -> dict[str, JsonValue]:
    branches = node.get("anyOf")
    if not isinstance(branches, list):
        return node
    real = [b for b in branches if b != {"type": "null"}]
    if len(real) != 1 or not isinstance(real[0], dict):
        return node
    return {**real[0], **{k: v for k, v in node.items() if k != "anyOf"}}
