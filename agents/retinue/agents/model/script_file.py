"""Reads a script from YAML. Whatever is wrong is a SpecError that names file, line, place and remedy, all at once."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from retinue.agents.model.script import Fail, Matcher, Pace, Script, ScriptTurn, SideTurn, UsageOverride
from retinue.tools.errors import SpecError

Loc = tuple[int | str, ...]


def load_script(path: Path) -> Script:
    """The script in the file. Raises SpecError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(f"{path}: no such script; a script is a YAML file with `agents:`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from None
    return parse_script(text, str(path))


def parse_script(text: str, name: str = "script") -> Script:
    """The script in the text; `name` stands for the file in errors. Raises SpecError."""
    tree = _tree(text, name)
    try:
        return Script.model_validate(_plain(tree))
    except ValidationError as error:
        problems = [_problem(details, tree, name) for details in error.errors(include_url=False)]
        raise SpecError("\n".join(dict.fromkeys(problems))) from None


def _tree(text: str, name: str) -> CommentedMap:
    try:
        tree = cast(object, YAML(typ="rt").load(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise SpecError(f"{where}: not YAML: {error.problem or error.context or 'unreadable'}") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise SpecError(f"{name}: not YAML: {error}") from None
    if not isinstance(tree, CommentedMap):
        raise SpecError(f"{name}:1: a script is a mapping with the key `agents`")
    return tree


def _plain(value: object) -> object:
    """Without the parser's own types, which pydantic would take for something else."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in cast(Mapping[object, object], value).items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(item) for item in cast(Sequence[object], value)]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else str(value)


def _key(key: object) -> str:
    return key if isinstance(key, str) else str(key)


def _problem(details: ErrorDetails, tree: CommentedMap, name: str) -> str:
    loc = details["loc"]
    line, place = _locate(tree, loc)
    return f"{name}:{line}: {place or 'script'}: {_words(details)}"


def _locate(tree: CommentedMap, loc: Loc) -> tuple[int, str]:
    """Line and written path of as much of `loc` as the document has; the rest are steps of the models."""
    node: object = tree
    line = 1
    place = ""
    for step in loc:
        at = _child(node, step)
        if at is None:
            break
        line, node = at
        place += f"[{step}]" if isinstance(step, int) else f"{'.' if place else ''}{step}"
    last = loc[-1] if loc else ""
    return line, place if not isinstance(last, str) or place.endswith(last) else f"{place}.{last}".lstrip(".")


def _child(node: object, step: int | str) -> tuple[int, object] | None:
    if isinstance(node, CommentedMap):
        for key, value in cast(Iterable[tuple[object, object]], node.items()):
            if _key(key) == step:
                return _line(node.lc.key(key)), value
    elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
        items = cast(Sequence[object], node)
        return _line(node.lc.item(step)), items[step]
    return None


def _line(position: object) -> int:
    return cast(tuple[int, int], position)[0] + 1


def _words(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ")
    match details["type"]:
        case "extra_forbidden":
            return _unknown_key(details["loc"])
        case "missing":
            return "is missing"
        case _:
            found = details["input"]
            shown = "" if isinstance(found, dict | list | BaseModel | None) else f" (found: {found!r})"
            return f"{message[:1].lower()}{message[1:]}{shown}"


def _unknown_key(loc: Loc) -> str:
    """The keys that are allowed there; the models' names are no part of the place, so the field's owner decides."""
    key = str(loc[-1])
    allowed = sorted(_model_at(loc).model_fields)
    close = difflib.get_close_matches(key, allowed, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"no such key; {hint}allowed: {', '.join(allowed)}"


_OWNERS: dict[str, type[BaseModel]] = {
    "pace": Pace,
    "fail": Fail,
    "usage": UsageOverride,
    "when": Matcher,
    "wait_for": Matcher,
    "expect": Matcher,
}


def _model_at(loc: Loc) -> type[BaseModel]:
    inner = [step for step in loc[:-1] if isinstance(step, str)]
    if inner and inner[0] == "agents":
        return next((_OWNERS[step] for step in inner[2:] if step in _OWNERS), ScriptTurn)
    if loc[0] == "side" and len(loc) > 2:
        return UsageOverride if "usage" in inner else SideTurn
    return _OWNERS.get(inner[0], Script) if inner else Script
