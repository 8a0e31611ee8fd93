"""Blocks as JSON, for a page that shows them. Text in it is harmless, but not escaped: a page sets it as text. Pure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import cast

from pydantic import JsonValue

from retinue.tools.render.blocks import Blocks
from retinue.tools.text import for_terminal


def as_json(blocks: Blocks) -> list[JsonValue]:
    """One object a block: its `type`, and its fields by their names."""
    return [{"type": type(block).__name__.lower(), **_fields(block)} for block in blocks]


def _fields(value: object) -> dict[str, JsonValue]:
    assert is_dataclass(value)
    return {field.name: _json(getattr(value, field.name)) for field in fields(value)}


def _json(value: object) -> JsonValue:
    match value:
        case str():
            return for_terminal(value)
        case bool() | int() | None:
            return value
        case tuple():
            return [_json(item) for item in cast("tuple[object, ...]", value)]
        case _:
            return _fields(value)
