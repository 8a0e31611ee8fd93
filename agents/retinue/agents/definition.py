"""Agent definitions: Markdown with front matter. Pure but for reading the built-in ones out of the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import cast

from pydantic import BaseModel, ConfigDict, JsonValue

from retinue.tools.errors import SpecError
from retinue.tools.permissions.decide import Mode

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}\Z")
_KEYS = ("name", "description", "tools", "disallowedTools", "model")
_LIST_KEYS = ("tools", "disallowedTools")

Value = str | list[str]


class AgentDefinition(BaseModel):
    """A named kind of agent. `tools` None: all. `model`, `mode` None: those of who starts it.

    `origin` says where it is from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    mode: Mode | None = None
    hooks: dict[str, JsonValue] = {}
    origin: str = ""


def parse_definition(text: str, origin: str) -> AgentDefinition:
    """Raises SpecError, which names `origin`, the line, what was found and what to write."""
    found = _FRONT.match(text)
    if found is None:
        raise SpecError(
            f"{origin}:1: an agent definition begins with front matter between two lines of ---; "
            "write at least name and description there"
        )
    front = _front_matter(found[1], origin)
    prompt = text[found.end() :].strip()
    if not prompt:
        raise SpecError(f"{origin}: there is no text after the front matter; it is the agent's system prompt")
    name = _text(front, "name", origin)
    if not _NAME.match(name):
        raise SpecError(f"{origin}: name is {name!r}; it must fit [a-z][a-z0-9-]*, at most 40 characters")
    model = front.get("model")
    tools = front.get("tools")
    return AgentDefinition(
        name=name,
        description=_text(front, "description", origin),
        prompt=prompt,
        tools=None if tools is None else _names(tools),
        disallowed_tools=_names(front.get("disallowedTools", [])),
        model=None if model in (None, "", "inherit") else _text(front, "model", origin),
        origin=origin,
    )


@cache
def builtin_definitions() -> Mapping[str, AgentDefinition]:
    """By name, from the package itself."""
    folder = resources.files("retinue.agents") / "definitions"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".md"))
    parsed = [parse_definition((folder / name).read_text("utf-8"), f"built-in {name}") for name in files]
    return {definition.name: definition for definition in parsed}


def _front_matter(block: str, origin: str) -> dict[str, Value]:
    """Exactly what definitions need of YAML: `key: text`, `key: [a, b]`, `key: a, b`, and lists with dashes."""
    front: dict[str, Value] = {}
    key = ""
    for number, line in enumerate(block.splitlines(), start=2):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("- "):
            _add_item(front, key, bare[2:], f"{origin}:{number}")
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or line[0].isspace():
            raise SpecError(f"{origin}:{number}: {bare!r} is not `key: value`; a text stays on one line")
        _check_key(key, front, f"{origin}:{number}")
        front[key] = _listed(value) if key in _LIST_KEYS else _unquoted(value)
    return front


def _check_key(key: str, front: Mapping[str, Value], where: str) -> None:
    if key in front:
        raise SpecError(f"{where}: {key} is given twice; keep one")
    if key not in _KEYS:
        close = difflib.get_close_matches(key, _KEYS, 1, cutoff=0.7)
        hint = f"did you mean {close[0]}? " if close else ""
        raise SpecError(f"{where}: {key}: no such key, or not supported yet; {hint}allowed: {', '.join(_KEYS)}")


def _add_item(front: dict[str, Value], key: str, item: str, where: str) -> None:
    if key not in _LIST_KEYS:
        raise SpecError(f"{where}: a list item belongs under {' or '.join(_LIST_KEYS)}")
    cast(list[str], front[key]).append(_unquoted(item.strip()))


def _listed(value: str) -> list[str]:
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return [_unquoted(item.strip()) for item in inner.split(",") if item.strip()]


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _text(front: Mapping[str, Value], key: str, origin: str) -> str:
    value = front.get(key)
    if not isinstance(value, str) or not value:
        raise SpecError(f"{origin}: {key} is missing; write `{key}: ...` in the front matter")
    return value


def _names(value: Value) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else (value,)
