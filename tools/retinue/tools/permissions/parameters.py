"""Rules about one parameter of a call, as in `Agent(model:opus)`. Pure."""

from __future__ import annotations

import re

from pydantic import JsonValue

from retinue.tools.base import RawInput, ToolInput

MAIN = frozenset(("command", "file_path", "path", "notebook_path", "url"))
"""What a rule speaks of when it names no parameter."""

_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(.+)\Z", re.DOTALL)
_NOT_ONE = frozenset(("domain",))


def parameter_of(content: str) -> tuple[str, str] | None:
    """Name and pattern of the value. `make:*` has this shape, too: it is about a parameter where a tool has one so
    named, and about the beginning of a command all the same.
    """
    found = _PARAMETER.match(content.strip())
    return (found[1], found[2].strip()) if found is not None and found[1] not in MAIN | _NOT_ONE else None


def main_parameter(content: str) -> str:
    """The main parameter that a rule names, which it must not; else nothing."""
    found = _PARAMETER.match(content.strip())
    return found[1] if found is not None and found[1] in MAIN and found[2] != "*" else ""


def fits_parameter(content: str, args: ToolInput) -> bool:
    """Compared letter by letter, with `*` for anything. What was not given, and what is no single value, never fits."""
    wanted = parameter_of(content)
    if wanted is None:
        return False
    name, pattern = wanted
    value = _value(name, args)
    if value is None or isinstance(value, (list, dict)):
        return False
    text = str(value).lower() if isinstance(value, bool) else str(value)
    pieces = (re.escape(piece) for piece in pattern.split("*"))
    return re.fullmatch(".*".join(pieces), text, re.DOTALL) is not None


def _value(name: str, args: ToolInput) -> JsonValue:
    given = args.as_object() if isinstance(args, RawInput) else args.model_dump(mode="json", exclude_unset=True)
    if name in given:
        return given[name]
    named = args.model_dump(mode="json", exclude_unset=True, by_alias=True)
    return named.get(name)
