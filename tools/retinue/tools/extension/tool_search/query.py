"""What a query of ToolSearch asks for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Query:
    """`names` of a selection; `words`, with a part that the name must have; or a `pattern`."""

    kind: Literal["select", "words", "pattern"]
    names: tuple[str, ...] = ()
    words: str = ""
    prefix: str = ""
    pattern: str = ""


def parse_query(text: str) -> Query:
    text = text.strip()
    if text.startswith("select:"):
        names = (name.strip() for name in text.removeprefix("select:").split(","))
        return Query("select", names=tuple(dict.fromkeys(name for name in names if name)))
    if text.startswith("regex:"):
        return Query("pattern", pattern=text.removeprefix("regex:").strip())
    if text.startswith("+"):
        prefix, _, words = text[1:].lstrip().partition(" ")
        return Query("words", words=words.strip(), prefix=prefix)
    return Query("words", words=text)
