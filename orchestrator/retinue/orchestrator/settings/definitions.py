"""Agent definitions that a repository or a user keeps: ours, and those of `.claude/agents` as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from retinue.agents.definition import AgentDefinition, builtin_definitions
from retinue.orchestrator.settings.places import UserPlaces
from retinue.tools.errors import SpecError
from retinue.tools.hooks.config import parse_hooks
from retinue.tools.permissions.decide import MODES, Mode
from retinue.tools.settings.merge import STRICT_MODES

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")
_KEY = re.compile(r"([A-Za-z_-]+):(?:[ \t]+(.*))?\Z")
_USED = frozenset(("name", "description", "tools", "disallowedTools", "permissionMode"))
_HARMLESS = frozenset(("color",))
_TRUSTED = frozenset(("hooks", "mcpServers"))
_FOLDERS = (".claude/agents/", ".retinue/agents/")

_FRONT_HOOKS: TypeAdapter[dict[str, dict[str, JsonValue]]] = TypeAdapter(dict[str, dict[str, JsonValue]])

ReadFolder = Callable[[Path], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Found:
    """One file. It defines nothing when it has no name or no description."""

    definition: AgentDefinition | None
    warnings: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


def definitions_in(contents: Mapping[str, bytes], *, trusted: bool, foreign: bool) -> tuple[Found, ...]:
    """Of a repository; a later one wins over an earlier one of its name, and over a built-in one when it is trusted."""
    return tuple(
        _apart(read_definition(content, path, trusted=trusted), trusted=trusted)
        for path, content in sorted(contents.items())
        if path.endswith(".md") and path.startswith(_FOLDERS if foreign else _FOLDERS[1])
    )


def _apart(found: Found, *, trusted: bool) -> Found:
    """Whoever names a built-in kind gets that, as long as nobody trusted another one of its name."""
    kind = found.definition
    if trusted or kind is None or kind.name not in builtin_definitions():
        return found
    return Found(None, found.warnings, (f"{kind.origin}: in the place of the built-in {kind.name}", *found.withheld))


def user_definitions(places: UserPlaces, read: ReadFolder, *, foreign: bool) -> tuple[Found, ...]:
    folders = (places.claude / "agents",) if foreign else ()
    found = ((path, data) for folder in (*folders, places.config / "agents") for path, data in read(folder).items())
    return tuple(read_definition(data, path, trusted=True) for path, data in found)


def read_definition(data: bytes, origin: str, *, trusted: bool) -> Found:
    """Whatever front matter other programs take. What has no effect is named."""
    text = data.decode("utf-8-sig", "replace")
    front = _FRONT.match(text)
    fields = front_matter(front[1]) if front is not None else {}
    name, description = _text(fields, "name"), _text(fields, "description")
    prompt = text[front.end() :].strip() if front is not None else ""
    if not (_NAME.match(name) and description and prompt):
        return Found(
            None, (f"{origin}: no agent definition: it needs a name like code-reviewer, a description, a text",)
        )
    mode, warnings, withheld = _mode(fields, trusted)
    hooks = _hooks(front[1], origin) if front is not None and "hooks" in fields and trusted else HookFront()
    warnings = (*warnings, *hooks.warnings)
    without = [key for key in fields if key not in _USED | _HARMLESS | {"hooks"}]
    if without:
        warnings = (*warnings, f"without effect here: {', '.join(without)}")
    if not trusted:
        withheld = (*withheld, *(key for key in fields if key in _TRUSTED))
    definition = AgentDefinition(
        name=name,
        description=description,
        prompt=prompt,
        tools=_names(fields["tools"]) if "tools" in fields else None,
        disallowed_tools=_names(fields.get("disallowedTools", ())),
        mode=mode,
        hooks=hooks.events,
        origin=origin,
    )
    return Found(
        definition,
        tuple(f"{origin}: {text}" for text in warnings),
        (f"{origin}: {', '.join(withheld)}",) if withheld else (),
    )


def _mode(
    fields: Mapping[str, str | tuple[str, ...]], trusted: bool
) -> tuple[Mode | None, tuple[str, ...], tuple[str, ...]]:
    written = _text(fields, "permissionMode")
    named: dict[str, Mode] = {"manual": "default", **{mode: mode for mode in MODES}}
    mode = named.get(written)
    if mode is None:
        return None, (f"permissionMode {written!r} is no mode here",) if written else (), ()
    if mode not in STRICT_MODES and not trusted:
        return None, (), (f"the mode {mode}",)
    return mode, (), ()


@dataclass(frozen=True, slots=True)
class HookFront:
    """The hooks of a definition, as they stand there."""

    events: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    warnings: tuple[str, ...] = ()


def _hooks(block: str, origin: str) -> HookFront:
    """The only key that is nested, so the only one that is read as YAML."""
    lines = block.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("hooks:"))
    below = (line for line in lines[start + 1 :])
    own = list(takewhile(lambda line: not line.strip() or line[0].isspace() or line.startswith("-"), below))
    try:
        load = cast("Callable[[str], object]", YAML(typ="safe", pure=True).load)
        events = _FRONT_HOOKS.validate_python(load("\n".join((lines[start], *own))))["hooks"]
        found = parse_hooks(events, origin, "definition")
    except (YAMLError, ValidationError):
        return HookFront(warnings=("hooks: they cannot be read, and are not run",))
    except SpecError as error:
        return HookFront(warnings=(f"{str(error).removeprefix(f'{origin}: ')}; its hooks are not run",))
    return HookFront(events, tuple(text.removeprefix(f"{origin}: ") for text in found.remarks))


def front_matter(block: str) -> dict[str, str | tuple[str, ...]]:
    """Tolerant: a text of several lines is joined, a list is a tuple, and what is nested deeper is left out."""
    found: dict[str, str | tuple[str, ...]] = {}
    for key, first, rest in _entries(block.splitlines()):
        items = tuple(_bare(line.strip()[2:]) for line in rest if line.strip().startswith("- "))
        if first in ("", "|", ">", "|-", ">-", "|+", ">+"):
            found[key] = items if items and not first else " ".join(line.strip() for line in rest).strip()
        else:
            found[key] = _bare(" ".join((first, *(line.strip() for line in rest))).strip())
    return found


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Each key at the margin with what stands behind it and the lines below it."""
    key, first, rest = "", "", list[str]()
    for line in lines:
        start = _KEY.match(line)
        if start is None:
            if line.strip() and not line.lstrip().startswith("#"):
                rest.append(line)
            continue
        if key:
            yield key, first, rest
        key, first, rest = start[1], (start[2] or "").strip(), []
    if key:
        yield key, first, rest


def _bare(text: str) -> str:
    text = text.strip()
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _text(fields: Mapping[str, str | tuple[str, ...]], key: str) -> str:
    value = fields.get(key, "")
    return value.replace("\\n", "\n").strip() if isinstance(value, str) else ""


def _names(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """`A, B`, `[A, B]` or a list; a comma between brackets, as in `Agent(a, b)`, separates nothing."""
    if isinstance(value, tuple):
        return value
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    return tuple(name for part in re.split(r",(?![^(]*\))", inner) if (name := _bare(part)))


def named_definition(data: bytes, origin: str) -> AgentDefinition:
    """A file that a spec names; what it would grant is for the spec to say. SpecError: it defines nothing."""
    found = read_definition(data, origin, trusted=False)
    if found.definition is None:
        raise SpecError(found.warnings[0])
    return found.definition
