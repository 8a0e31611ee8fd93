"""Words that several tools show their calls with. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.tools.text import counted, one_line

SHOWN = 3


def listed(names: Iterable[str], most: int = SHOWN) -> str:
    """`a, b, c, …`: each once, the first ones."""
    distinct = list(dict.fromkeys(one_line(name) for name in names))
    return ", ".join((*distinct[:most], *(["…"] if len(distinct) > most else [])))


def several(names: Iterable[str], word: str) -> str:
    """`5 files: a, b, c, …`."""
    distinct = list(dict.fromkeys(names))
    return f"{counted(len(distinct), word)}: {listed(distinct)}"
