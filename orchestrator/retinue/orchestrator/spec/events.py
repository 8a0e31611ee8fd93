"""The foreign YAML parser, behind one typed stream of events. Whatever it raises becomes the spec error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from retinue.orchestrator.spec.problems import Mark, Problem, invalid, printable

EventKind = Literal["document", "mapping", "list", "end", "scalar", "alias"]
_KINDS: dict[str, EventKind] = {
    "DocumentStartEvent": "document",
    "MappingStartEvent": "mapping",
    "SequenceStartEvent": "list",
    "MappingEndEvent": "end",
    "SequenceEndEvent": "end",
    "ScalarEvent": "scalar",
    "AliasEvent": "alias",
}


@dataclass(frozen=True, slots=True)
class YamlEvent:
    """`text` of a scalar; `plain` when it has no quotes and no tag; `version` of a document's %YAML line."""

    kind: EventKind
    mark: Mark
    text: str = ""
    plain: bool = False
    tag: str | None = None
    anchor: str | None = None
    version: tuple[int, int] | None = None


class _ForeignMark(Protocol):
    line: int
    column: int


class _ForeignEvent(Protocol):
    """What the parser's events have, each some of it."""

    start_mark: _ForeignMark
    value: str
    implicit: tuple[bool, bool]
    anchor: str | None
    ctag: object
    version: tuple[int, int] | None


class _ForeignError(Protocol):
    context: str | None
    problem: str | None
    context_mark: _ForeignMark | None
    problem_mark: _ForeignMark | None


def read_events(text: str, name: str) -> Iterator[YamlEvent]:
    parse = cast("Callable[[str], Iterator[_ForeignEvent]]", YAML(typ="safe", pure=True).parse)
    try:
        for event in parse(text):
            kind = _KINDS.get(type(event).__name__)
            if kind is not None:
                yield _typed(kind, event, name)
    except MarkedYAMLError as error:
        raise invalid(name, [_not_yaml(cast("_ForeignError", cast("object", error)), name)]) from None
    except Exception as error:  # the foreign parser also lets an IndexError or a ValueError of its own escape
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise invalid(name, [syntax(Mark(name, 1, 1), f"not valid YAML: {said}")]) from None


def syntax(mark: Mark, what: str, remedy: str = "") -> Problem:
    return Problem("syntax", (), printable(what[:300]), remedy=remedy, mark=mark)


def _typed(kind: EventKind, event: _ForeignEvent, name: str) -> YamlEvent:
    mark = Mark(name, event.start_mark.line + 1, event.start_mark.column + 1)
    match kind:
        case "document":
            return YamlEvent(kind, mark, version=event.version)
        case "end":
            return YamlEvent(kind, mark)
        case "alias":
            return YamlEvent(kind, mark, anchor=event.anchor)
        case _:
            tag = None if event.ctag is None else str(event.ctag)
            is_scalar = kind == "scalar"
            plain = is_scalar and tag is None and bool(event.implicit[0])
            return YamlEvent(kind, mark, event.value if is_scalar else "", plain, tag, event.anchor)


def _not_yaml(error: _ForeignError, name: str) -> Problem:
    place = error.problem_mark or error.context_mark
    mark = Mark(name, place.line + 1, place.column + 1) if place else Mark(name, 1, 1)
    said = ", ".join(part for part in (error.context, error.problem) if part)
    remedy = "indent with spaces, not with tabs" if "'\\t'" in said else ""
    return syntax(mark, f"not valid YAML: {said}", remedy)
