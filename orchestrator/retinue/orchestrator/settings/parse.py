"""From the text of a settings file to what it says, or to every problem with its line and its remedy. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from retinue.orchestrator.spec.problems import InvalidSpec, Mark, Problem, invalid, nearest, quoted
from retinue.orchestrator.spec.problems import Path as DocPath
from retinue.orchestrator.spec.tree import Node, mark_of, plain_of, read_tree
from retinue.tools.base import Behavior
from retinue.tools.errors import SpecError
from retinue.tools.permissions.rules import parse_rule
from retinue.tools.settings.model import PermissionSettings, SettingsFile

_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
_NO_CASE = "`compatibility: false` in a settings file of retinue's own leaves such files out"

NOT_FOR_TOOLS = ("RAY_", "RETINUE_", "TMUX", "GIT_", "ANTHROPIC_", "CLAUDE_CODE_")
"""What steers retinue itself, or may be the key of a model."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """`ignored` are keys, and allow rules, of a foreign file that have no effect here."""

    content: SettingsFile
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Text:
    """One file. The tree is only needed for the places of what is wrong, and a JSON file may have none."""

    name: str
    tree: Node | None
    values: dict[str, JsonValue]

    def problem(self, path: DocPath, what: str, remedy: str = "") -> Problem:
        mark = Mark(self.name) if self.tree is None else mark_of(self.tree, path)
        return Problem("value", path, what, remedy=remedy, mark=mark)


def parse_settings(text: str, name: str, *, foreign: bool) -> Parsed:
    """Keys that we do not know are refused in our own files, and named in foreign ones. Raises InvalidSpec."""
    file = _read(text, name)
    values, unknown = _known(file.values, SettingsFile)
    inner = values.get("permissions")
    if isinstance(inner, dict):
        kept, more = _known(inner, PermissionSettings, "permissions.")
        values["permissions"] = kept
        unknown += more
        unknown += _other_mode(kept) if foreign else []
    if unknown and not foreign:
        raise invalid(name, [_unknown(file, key) for key in unknown])
    try:
        content = SettingsFile.model_validate(values)
    except ValidationError as error:
        raise invalid(name, [_wrong(file, each["loc"], each["msg"], foreign) for each in error.errors()]) from None
    content, dropped = _checked(file, content, foreign=foreign)
    return Parsed(content, (*unknown, *dropped))


def _read(text: str, name: str) -> _Text:
    if not text.strip():
        return _Text(name, None, {})
    if not name.endswith(".json"):
        tree, problems = read_tree(text, name)
        if problems:
            raise invalid(name, problems)
        return _Text(name, tree, _mapping(plain_of(tree), name))
    try:
        values: JsonValue = json.loads(text)
    except json.JSONDecodeError as error:
        mark = Mark(name, error.lineno, error.colno)
        raise invalid(name, [Problem("syntax", (), f"no JSON: {error.msg}", mark=mark)]) from None
    except RecursionError:
        raise invalid(name, [Problem("syntax", (), "nested too deep", mark=Mark(name))]) from None
    return _Text(name, _tree(text, name), _mapping(values, name))


def _tree(text: str, name: str) -> Node | None:
    """JSON is YAML but for a few escapes; where it is not, problems have no line."""
    try:
        return read_tree(text, name)[0]
    except InvalidSpec:
        return None


def _mapping(values: JsonValue, name: str) -> dict[str, JsonValue]:
    try:
        return _OBJECT.validate_python({} if values is None else values)
    except ValidationError:
        what = "expected a mapping of keys"
        raise invalid(name, [Problem("value", (), what, remedy="such as permissions", mark=Mark(name))]) from None


def _known(
    values: dict[str, JsonValue], model: type[BaseModel], prefix: str = ""
) -> tuple[dict[str, JsonValue], list[str]]:
    names = {name for key, field in model.model_fields.items() for name in (key, field.alias or key)}
    kept = {key: value for key, value in values.items() if key in names}
    unknown = [f"{prefix}{key}" for key in values if key not in names and key not in _SAYS_NOTHING]
    return kept, unknown


def _other_mode(permissions: dict[str, JsonValue]) -> list[str]:
    """Modes that are called otherwise, or are none, here."""
    mode = permissions.get("defaultMode")
    if mode == "manual":
        permissions["defaultMode"] = "default"
    if mode != "auto":
        return []
    del permissions["defaultMode"]
    return ["permissions.defaultMode (auto)"]


_SAYS_NOTHING = frozenset(("$schema",))


def _unknown(file: _Text, key: str) -> Problem:
    *above, last = key.split(".")
    path: DocPath = (*above, last)
    model = PermissionSettings if above else SettingsFile
    names = tuple(field.alias or name for name, field in model.model_fields.items())
    mark = Mark(file.name) if file.tree is None else mark_of(file.tree, path, on_key=True)
    what = f"there is no key {quoted(last)}"
    return Problem("unknown_key", path, what, last, names, nearest(last, names), mark=mark)


def _wrong(file: _Text, path: DocPath, said: str, foreign: bool) -> Problem:
    return file.problem(path, said[:1].lower() + said[1:], _NO_CASE if foreign else "")


def _checked(file: _Text, content: SettingsFile, *, foreign: bool) -> tuple[SettingsFile, list[str]]:
    """An allow rule of a foreign file that could never work is left out; every other such rule is a problem."""
    permissions, problems, dropped = content.permissions, list[Problem](), list[str]()
    kept: list[str] = []
    lists: tuple[tuple[Behavior, tuple[str, ...]], ...] = (
        ("deny", permissions.deny),
        ("ask", permissions.ask),
        ("allow", permissions.allow),
    )
    for behavior, rules in lists:
        for n, rule in enumerate(rules):
            try:
                parse_rule(rule, behavior)
            except SpecError as error:
                if foreign and behavior == "allow":
                    dropped.append(f"permissions.allow[{n}] ({rule})")
                    continue
                problems.append(file.problem(("permissions", behavior, n), str(error), _NO_CASE if foreign else ""))
            if behavior == "allow":
                kept.append(rule)
    steering = [name for name in content.env if name.startswith(NOT_FOR_TOOLS)]
    if foreign:
        dropped += [f"env.{name}" for name in steering]
    else:
        problems += [file.problem(("env", name), f"tools never get {name}", "remove it") for name in steering]
    if problems:
        raise invalid(file.name, problems)
    env = {name: value for name, value in content.env.items() if name not in steering}
    update = {"permissions": permissions.model_copy(update={"allow": tuple(kept)}), "env": env}
    return content.model_copy(update=update), dropped
