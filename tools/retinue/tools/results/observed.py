"""What the ledger keeps of a call for those who look on: bounded, and never needed by the model. Pure."""

from __future__ import annotations

from pydantic import BaseModel, JsonValue

TEXT_CHARS = 4_000
"""A longer text of the output is cut."""
ALL_CHARS = 40_000
"""What is larger even so is left out as a whole."""


def bounded(model: BaseModel, *, only_set: bool = False) -> dict[str, JsonValue] | None:
    """The model as JSON with its long texts cut; None when it is too large even so, or can be no JSON."""
    try:
        dumped: dict[str, JsonValue] = model.model_dump(mode="json", by_alias=True, exclude_unset=only_set)
    except Exception:
        return None
    left = ALL_CHARS
    kept = {key: _cut(value) for key, value in dumped.items()}
    for value in kept.values():
        left = _spend(value, left)
        if left < 0:
            return None
    return kept


def _cut(value: JsonValue) -> JsonValue:
    match value:
        case str() if len(value) > TEXT_CHARS or not value.isascii():
            text = value if len(value) <= TEXT_CHARS else f"{value[:TEXT_CHARS]}…"
            return text.encode("utf-8", "replace").decode()
        case list():
            return [_cut(item) for item in value]
        case dict():
            return {str(_cut(key)): _cut(item) for key, item in value.items()}
        case _:
            return value


def _spend(value: JsonValue, left: int) -> int:
    """What is left of an allowance of characters; below 0 as soon as it is used up."""
    if left < 0:
        return left
    match value:
        case str():
            return left - len(value) - 2
        case list():
            for item in value:
                left = _spend(item, left - 1)
        case dict():
            for key, item in value.items():
                left = _spend(item, left - len(key) - 4)
        case _:
            return left - 5
    return left
