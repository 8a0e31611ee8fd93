"""Which sed scripts only print or replace. An allow-list: what is not of these forms is not vouched for. Pure."""

from __future__ import annotations

import re


def _bracket(besides: str = "") -> str:
    """One that ends where every sed ends it: no `]` is first in it or behind a backslash, each class in it is whole."""
    return rf"\[\^?+(?:[^]\[\\\n{besides}]|\\[^]\[\\c\n{besides}]|\\\\|\[:[a-z]+:\])+\]"


_ADDRESS = rf"(?:\d+|\$|/(?:[^/\\\n\[]|\\[^\n]|{_bracket('/')})+/)"
_RANGE = rf"(?:{_ADDRESS}(?:,(?:{_ADDRESS}|\+\d+|~\d+))?)?"
_PRINT = re.compile(rf"{_RANGE}[pdq=]|\d+(?:,\d+)?[pdq]|{_ADDRESS}?G")
_FLAGS = re.compile(r"[gpiImM1-9]*\Z")
_DELIMITERS = frozenset("/|#,:@%!_~+")
_LEADING_RANGE = re.compile(_RANGE)
_CLOSED_BRACKET = re.compile(_bracket())


def is_harmless(script: str) -> bool:
    """Whether the whole script is made of prints, deletions from the output and substitutions without effects."""
    if not script.isascii() or "\n" in script or "\0" in script:
        return False
    at, length = 0, len(script)
    while at < length:
        while at < length and script[at] in "; \t":
            at += 1
        if at == length:
            return True
        end = _command_end(script, at)
        if end is None:
            return False
        at = end
        while at < length and script[at] in " \t":
            at += 1
        if at < length and script[at] != ";":
            return False
    return True


def _command_end(script: str, at: int) -> int | None:
    """Where the command ends that begins here; None for one that is not known."""
    address = _LEADING_RANGE.match(script, at)
    assert address is not None
    letter = address.end()
    if script[letter : letter + 1] in ("s", "y"):
        return _substitution_end(script, letter + 1)
    found = _PRINT.match(script, at)
    return found.end() if found is not None else None


def _substitution_end(script: str, at: int) -> int | None:
    if at >= len(script) or script[at] not in _DELIMITERS:
        return None
    delimiter = script[at]
    at += 1
    for _ in range(2):
        end = _field_end(script, at, delimiter)
        if end is None:
            return None
        at = end + 1
    start = at
    while at < len(script) and script[at] not in "; \t":
        at += 1
    return at if _FLAGS.match(script[start:at]) else None


def _field_end(script: str, at: int, delimiter: str) -> int | None:
    """The delimiter that ends a field. One in brackets is refused, as are brackets whose end seds place differently."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
            continue
        if script[at] == delimiter:
            return at
        if script[at] == "[":
            bracket = _CLOSED_BRACKET.match(script, at)
            if bracket is None or delimiter in bracket[0]:
                return None
            at = bracket.end()
            continue
        at += 1
    return None
