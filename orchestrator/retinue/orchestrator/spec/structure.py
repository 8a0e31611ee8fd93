"""From a tree to the model: every unknown key, every value of the wrong shape, everything that is not supported yet.

A document with such problems is repaired as far as needed to check the rest of it, so that all is said at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from retinue.orchestrator.spec.expand import matches
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.spec.part import SpecPart
from retinue.orchestrator.spec.problems import Path, Problem, nearest, quoted
from retinue.orchestrator.spec.tree import Mapping, Node, Scalar, Sequence, node_at, plain_of, walk
from retinue.orchestrator.spec.vocabulary import NOT_SUPPORTED_YET, NotYet

_ROUNDS = 4
_SHAPES = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list"}
_SHORT_FORMS = {
    "ModelSpec": "PROVIDER:NAME, or a mapping with use",
    "DoneWhen": "a command, or a mapping with command and timeout",
}
_REMEDIES = {"version": "write version: 1", "name": "write name: and a name for the team"}
_AT_MOST = 100
_PLACEHOLDERS: dict[str, JsonValue] = {
    "version": 1,
    "name": "unnamed",
    "agents": {},
    "subject": "unnamed",
    "command": "true",
    "use": "anthropic:unnamed",
}
_PLACES = (
    "",
    "repo",
    "permissions",
    "sandbox",
    "web",
    "web.search",
    "web.search.endpoint",
    "agents.*",
    "agents.*.tools",
    "agents.*.limits",
    "tasks.*",
    "merge",
    "limits",
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """`spec` is None when not even the rest can be read; `repaired` are the places that are not as written."""

    spec: TeamSpec | None
    problems: tuple[Problem, ...]
    repaired: tuple[Path, ...]


def shape(root: Mapping) -> Shaped:
    problems = [*not_supported(root)]
    plain = plain_of(root)
    repaired = [problem.path for problem in problems]
    for path in repaired:
        _remove(plain, path)
    for _ in range(_ROUNDS):
        try:
            return Shaped(TeamSpec.model_validate(plain), tuple(problems), tuple(repaired))
        except ValidationError as error:
            for details in error.errors(include_url=False, include_input=False):
                path, problem = _problem(details, root)
                if len(problems) < _AT_MOST and not any(_within(path, done) for done in repaired[:_AT_MOST]):
                    problems.append(problem)
                repaired.append(path)
                _repair(plain, path, missing=details["type"] == "missing")
    return Shaped(None, tuple(problems), tuple(repaired))


def not_supported(root: Node) -> Iterator[Problem]:
    """Keys and values of the table; rules and tools are found where they are read."""
    rows = [row for row in NOT_SUPPORTED_YET if row.match in ("key", "value")]
    for path, node in walk(root):
        scalar = node if isinstance(node, Scalar) else None
        for row in rows:
            is_meant = row.match == "key" or (scalar is not None and scalar.value in row.values)
            if is_meant and any(matches(tuple(p.split(".")), path) for p in row.paths):
                yield refused_yet(row, path, scalar.raw if scalar is not None else "")


def refused_yet(row: NotYet, path: Path, found: str) -> Problem:
    what = f"{quoted(found)} is not supported yet" if row.match != "key" else "not supported yet"
    return Problem("not_supported", path, what, found=found, remedy=row.remedy, on_key=row.match == "key")


def found_text(node: Node | None) -> str:
    """What stands in the document, as written: the value of a variable is never shown."""
    match node:
        case Scalar(value=None) if "${" in node.raw:
            return f"nothing, from {quoted(node.raw)}"
        case None | Scalar(value=None):
            return "nothing"
        case Mapping():
            return "a mapping"
        case Sequence():
            return "a list"
        case Scalar(value=str()):
            return quoted(node.raw)
        case Scalar():
            return quoted(node.raw)[1:-1]


def _problem(details: ErrorDetails, root: Node) -> tuple[Path, Problem]:
    on_key = details["loc"][-1:] == ("[key]",)
    loc = details["loc"][:-1] if on_key else details["loc"]
    if isinstance(node_at(root, loc[:-1]), Scalar):
        loc = loc[:-1]  # a short form, as in `model: PROVIDER:NAME`, has the error inside
    match details["type"]:
        case "extra_forbidden":
            return loc, _unknown_key(loc)
        case "missing":
            return loc, _missing(loc)
        case "literal_error":
            return loc, _unknown_value(loc, root, str(details.get("ctx", {}).get("expected", "")))
        case _:
            return loc, _wrong_value(details, loc, root, on_key=on_key)


def _missing(path: Path) -> Problem:
    key = str(path[-1])
    remedy = _REMEDIES.get(key, "") if len(path) == 1 else ""
    return Problem("missing", path[:-1], f"the key {quoted(key)} is missing", remedy=remedy, on_key=True)


def _unknown_key(path: Path) -> Problem:
    key = str(path[-1])
    part = part_at(path[:-1])
    allowed = tuple(part.model_fields) if part is not None else ()
    suggestion = nearest(key, allowed)
    remedy = "" if suggestion else _elsewhere(key)
    if key == "<<":
        remedy = "merge keys are no part of YAML 1.2, so write the keys out"
    what = f"unknown key {quoted(key)}"
    return Problem("unknown_key", path, what, key, allowed, suggestion, remedy, on_key=True)


def _elsewhere(key: str) -> str:
    for place in _PLACES:
        part = part_at(tuple(place.split(".")) if place else ())
        if part is not None and key in part.model_fields:
            where = place.replace("agents.*", "agents.NAME").replace("tasks.*", "a task")
            return f"{quoted(key)} is a key of {where}" if where else f"{quoted(key)} is a key of the whole spec"
    return ""


def _unknown_value(path: Path, root: Node, expected: str) -> Problem:
    allowed = tuple(word.strip("'") for word in re.split(r", | or ", expected))
    node = node_at(root, path)
    found = found_text(node)
    if not isinstance(node, Scalar) or node.value is None:
        what = f"expected one of the allowed values, found {found}"
        return Problem("value", path, what, found, allowed)
    if node.raw in allowed:
        return Problem("value", path, f"unknown value {found}", found, allowed, remedy="write it without quotes")
    return Problem("value", path, f"unknown value {found}", found, allowed, nearest(node.raw, allowed))


def _wrong_value(details: ErrorDetails, path: Path, root: Node, *, on_key: bool) -> Problem:
    context = details.get("ctx", {})
    shape_of = _SHORT_FORMS.get(str(context.get("class_name"))) or _SHAPES.get(details["type"], details["msg"])
    expected = str(context.get("expected") or shape_of)
    remedy = str(context.get("remedy", ""))
    node = node_at(root, path)
    found = quoted(str(path[-1])) if on_key and path else found_text(node)
    if isinstance(node, Scalar) and node.value != node.raw and isinstance(node.value, str):
        remedy = ""  # it may quote the value of a variable
    if isinstance(node, Scalar) and node.value is None and not remedy:
        is_agent = len(path) == 2 and path[0] == "agents"
        remedy = "write {} for an agent with nothing to set" if is_agent else "remove the key or write a value"
    return Problem("value", path, f"expected {expected}, found {found}", found, remedy=remedy, on_key=on_key)


def part_at(path: Path) -> type[SpecPart] | None:
    """The model whose keys stand at a place of the document."""
    annotation: object = TeamSpec
    for part in path:
        annotation = _bare(annotation)
        origin = get_origin(annotation)
        if origin is dict:
            annotation = _args(annotation)[1]
        elif origin is tuple:
            annotation = _args(annotation)[0]
        elif isinstance(annotation, type) and issubclass(annotation, SpecPart) and part in annotation.model_fields:
            annotation = annotation.model_fields[str(part)].annotation
        else:
            return None
    annotation = _bare(annotation)
    return annotation if isinstance(annotation, type) and issubclass(annotation, SpecPart) else None


def _bare(annotation: object) -> object:
    """Without `Annotated` and without `| None`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = next(arg for arg in _args(annotation) if arg is not type(None))
    return annotation


def _args(annotation: object) -> list[object]:
    return list(get_args(annotation))


def _within(path: Path, outer: Path) -> bool:
    return path[: len(outer)] == outer


def _holder(plain: JsonValue, path: Path) -> JsonValue:
    for part in path:
        if isinstance(plain, dict) and isinstance(part, str):
            plain = plain.get(part)
        elif isinstance(plain, list) and isinstance(part, int) and part < len(plain):
            plain = plain[part]
        else:
            return None
    return plain


def _remove(plain: JsonValue, path: Path) -> None:
    holder = _holder(plain, path[:-1])
    if isinstance(holder, dict):
        holder.pop(str(path[-1]), None)


def _repair(plain: JsonValue, path: Path, *, missing: bool) -> None:
    """Take out what is wrong, or put something neutral where something has to be."""
    holder = _holder(plain, path[:-1])
    last = path[-1] if path else ""
    if isinstance(holder, dict):
        if missing:
            holder[str(last)] = _PLACEHOLDERS.get(str(last))
        elif len(path) == 2 and path[0] == "agents" and str(last) in holder:
            holder[str(last)] = {}
        else:
            holder.pop(str(last), None)
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
        holder[last] = {"subject": "unnamed"} if path[0] == "tasks" and len(path) == 2 else "unnamed"
    elif len(path) > 1:
        _repair(plain, path[:-1], missing=False)
