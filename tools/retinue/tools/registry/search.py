"""Finds tools by words: BM25 over names, descriptions, parameters and hints. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from retinue.tools.ports import DeferredTool

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_K1, _B = 1.2, 0.75
_NAME_WEIGHT, _HINT_WEIGHT = 4, 3
"""How many times a word counts in a name and in a hint: few words there say more than many in a description."""
_DEEPEST = 6


@dataclass(frozen=True)
class Index:
    """The tools of one search. Equal scores stay in the order given."""

    tools: tuple[DeferredTool, ...]

    @cached_property
    def _counts(self) -> tuple[Counter[str], ...]:
        return tuple(map(_counted, self.tools))

    @cached_property
    def _document_frequency(self) -> Counter[str]:
        return Counter(word for counts in self._counts for word in counts)

    @cached_property
    def _average(self) -> float:
        return sum(counts.total() for counts in self._counts) / max(1, len(self._counts)) or 1.0

    def ranked(self, query: str, *, prefix: str = "") -> tuple[DeferredTool, ...]:
        """The tools that have some word of the query, best first; with a prefix, only those that have it in the name.

        A prefix without words finds all that have it.
        """
        wanted = list(dict.fromkeys(words_of(query)))
        within = [n for n, tool in enumerate(self.tools) if prefix.lower() in tool.name.lower()]
        if not wanted:
            return tuple(self.tools[n] for n in within) if prefix else ()
        scored = [(self._score(self._counts[n], wanted), n) for n in within]
        return tuple(self.tools[n] for score, n in sorted(scored, key=lambda pair: (-pair[0], pair[1])) if score > 0)

    def _score(self, counts: Counter[str], wanted: Sequence[str]) -> float:
        length = 1 - _B + _B * counts.total() / self._average
        return sum(
            self._rarity(word) * counts[word] * (_K1 + 1) / (counts[word] + _K1 * length)
            for word in wanted
            if counts[word]
        )

    def _rarity(self, word: str) -> float:
        found = self._document_frequency[word]
        return math.log(1 + (len(self.tools) - found + 0.5) / (found + 0.5))


def words_of(text: str) -> list[str]:
    """In lower case: `createIssue`, `create_issue` and `create-issue` are the same words; a plural is a singular."""
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def searched_text(tool: DeferredTool) -> str:
    """All that is searched in, on one line."""
    parts = (tool.name, tool.description, tool.search_hint, *parameters_of(tool.input_schema))
    return " ".join(" ".join(parts).split())


def parameters_of(schema: Mapping[str, JsonValue], depth: int = 0) -> Iterator[str]:
    """Names and descriptions of parameters, those inside of others included."""
    if depth > _DEEPEST:
        return
    properties = schema.get("properties")
    for name, value in properties.items() if isinstance(properties, dict) else ():
        yield name
        if isinstance(value, dict):
            if isinstance(said := value.get("description"), str):
                yield said
            yield from parameters_of(value, depth + 1)
    if isinstance(items := schema.get("items"), dict):
        yield from parameters_of(items, depth + 1)


def _counted(tool: DeferredTool) -> Counter[str]:
    return _weighed(
        (
            (tool.name, _NAME_WEIGHT),
            (tool.search_hint, _HINT_WEIGHT),
            (tool.description, 1),
            *((text, 1) for text in parameters_of(tool.input_schema)),
        )
    )


def _weighed(texts: Iterable[tuple[str, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text, weight in texts:
        for word in words_of(text):
            counts[word] += weight
    return counts


def _stem(word: str) -> str:
    """`issues` is found by `issue`. No more than that: names of tools are no prose."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
