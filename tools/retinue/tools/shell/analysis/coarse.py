"""Commands in a text that cannot be read with certainty: too many rather than too few. Pure.

Used only to find what is forbidden or critical, never to approve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from retinue.tools.shell.analysis.model import Word, names
from retinue.tools.shell.analysis.quoting import resolve

_SEPARATORS = re.compile(r"&&|\|\||[;|&\n\r\v\f(){}`]|\$\(|[<>]\(")
_JOINED = re.compile(r"\\\n")
_WORD = re.compile(r"(?:[^\s'\"\\]|'[^']*'|\"(?:[^\"\\]|\\[\s\S])*\"|\\[\s\S]|['\"\\])+")
_REDIRECT = re.compile(r"\d*(?:&>>?|[<>]+[&|]?)\S*\Z")
_LEADS = names(
    """
    if then elif else while until do ! time coproc case in function
    """
)
_MAX_PIECES = 4_000


def is_cut(text: str) -> bool:
    """Whether the text has more pieces than are looked at."""
    return len(text) > _MAX_PIECES and len(set(_SEPARATORS.split(_JOINED.sub("", text)))) > _MAX_PIECES


def coarse_commands(text: str) -> Iterator[tuple[Word, ...]]:
    """Each piece between separators, whatever quotes say, without words that only lead to a command."""
    pieces = dict.fromkeys(_SEPARATORS.split(_JOINED.sub("", text)))
    for piece in islice(pieces, _MAX_PIECES):
        raw = [word for word in _WORD.findall(piece) if not _REDIRECT.match(word)]
        while raw and raw[0] in _LEADS:
            raw.pop(0)
        if raw:
            yield tuple(map(resolve, raw))
            if "'" in piece or '"' in piece:
                yield tuple(resolve(word.strip("'\"")) for word in raw)
