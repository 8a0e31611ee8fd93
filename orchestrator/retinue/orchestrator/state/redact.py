"""Secrets that retinue was given are taken out of everything that it writes down. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast
from urllib.parse import quote

from pydantic import JsonValue

MARK = "[redacted]"
SHORTEST = 6
"""A shorter value would be found by accident everywhere."""
_SHORTEST_LINE = 16


class Redactor:
    """Replaces known values by a mark: as they are, as they stand inside JSON or a URL, and line by line.

    Not a guard against who wants to pass a secret on: what an agent encodes or cuts up is not recognised.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._needles = tuple(sorted({form for secret in secrets for form in _forms(secret)}))

    def text(self, text: str) -> str:
        found = [needle for needle in self._needles if needle in text]
        return _cut(text, found) if found else text

    def body(self, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Keys and values, at any depth. The same object when there are no secrets."""
        return cast(dict[str, JsonValue], self._value(body)) if self._needles else body

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in cast(dict[object, object], value).items()}
        if isinstance(value, list | tuple):
            return [self._value(item) for item in cast(list[object], value)]
        return value


def _forms(secret: str) -> set[str]:
    """A file of several lines is often shown with numbers in front of each."""
    wholes = {secret, secret.strip()}
    lines = {line.strip() for line in secret.splitlines()} - wholes
    plain = {whole for whole in wholes if len(whole) >= SHORTEST} | {
        line for line in lines if len(line) >= _SHORTEST_LINE
    }
    escaped = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for text in plain for ascii_only in (True, False)}
    return plain | escaped | {quote(text, safe="", errors="surrogatepass") for text in plain}


def _cut(text: str, needles: list[str]) -> str:
    """One mark for each stretch that found values cover, also where they overlap."""
    parts: list[str] = []
    done = 0
    for start, end in _merged(sorted(span for needle in needles for span in _spans(text, needle))):
        parts += (text[done:start], MARK)
        done = end
    return "".join((*parts, text[done:]))


def _spans(text: str, needle: str) -> Iterable[tuple[int, int]]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + 1)


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
