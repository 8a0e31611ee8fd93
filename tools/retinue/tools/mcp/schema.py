"""A server's schema made fit for a model's provider: an object at its root, without a choice there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

Schema = dict[str, JsonValue]
_CHOICES = ("anyOf", "oneOf")


def flattened(schema: Mapping[str, JsonValue]) -> tuple[Schema, str]:
    """The schema, and what it cannot say any more, in words. ValueError: it does not describe an object.

    Providers refuse `anyOf`, `oneOf` and `allOf` at the root: the properties of all parts are put together.
    """
    flat: Schema = {key: value for key, value in schema.items() if key not in (*_CHOICES, "allOf")}
    if flat.setdefault("type", "object") != "object":
        raise ValueError("its input is no object")
    properties = dict(_mapping(flat.get("properties")))
    required = list(_names(flat.get("required")))
    for part in _parts(schema, "allOf"):
        properties = {**_mapping(part.get("properties")), **properties}
        required += [name for name in _names(part.get("required")) if name not in required]
    groups: list[str] = []
    for key in _CHOICES:
        for part in _parts(schema, key):
            properties = {**_mapping(part.get("properties")), **properties}
            if names := _names(part.get("required")):
                groups.append(" and ".join(names))
    flat["properties"] = properties
    if required:
        flat["required"] = [*required]
    return flat, f"Give one of these groups of parameters: {'; '.join(groups)}." if groups else ""


def _parts(schema: Mapping[str, JsonValue], key: str) -> list[Schema]:
    parts = schema.get(key)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _mapping(value: JsonValue) -> Schema:
    return value if isinstance(value, dict) else {}


def _names(value: JsonValue) -> list[str]:
    return [name for name in cast("list[object]", value) if isinstance(name, str)] if isinstance(value, list) else []
