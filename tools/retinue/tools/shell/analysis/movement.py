"""Where each command of a text runs, after every `cd` before it. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from retinue.tools.shell.analysis.model import Part, Place, Trait, Word
from retinue.tools.shell.analysis.paths import candidates
from retinue.tools.shell.analysis.readonly import is_free

_MOVES = frozenset(("cd", "pushd", "popd", "chdir"))
_PIPES = frozenset(("|", "|&", "&"))
_MAX_BASES = 8


def is_move(part: Part) -> bool:
    return bool(part.inner) and part.inner[0].value in _MOVES


def places(parts: Sequence[Part], start: Place) -> list[tuple[Place, str | None]]:
    """For each part, where it may run, and why that or its move cannot be approved unasked.

    A move that fails leaves the rest of its list where it is, and so does one that another program runs.
    """
    if not any(map(is_move, parts)):
        return [(start, None)] * len(parts)
    found: list[tuple[Place, str | None]] = []
    moved, passed = start.bases, start.bases
    lost: str | None = None
    for at, part in enumerate(parts):
        if part.raw.connector != "&&":
            moved = passed = tuple(dict.fromkeys((*moved, *passed)))
        here = start._replace(bases=moved)
        why = lost
        if is_move(part):
            piped = part.raw.connector in _PIPES or (at + 1 < len(parts) and parts[at + 1].raw.connector in _PIPES)
            targets, why = _target(part.inner, here)
            why = lost or why or ("cd in a pipeline" if piped else None)
            lost = lost or (why if targets is None else None)
            moved = targets if targets is not None else moved
            if part.raw.negated or part.inner is not part.words:
                moved = tuple(dict.fromkeys((*moved, *here.bases)))
            passed = tuple(dict.fromkeys((*passed, *moved)))
            if len(moved) > _MAX_BASES:
                lost = why = "too many places"
                moved = moved[:1]
        elif why is None and moved != start.bases:
            why = _bound(part)
        found.append((here, why))
    return found


def _bound(part: Part) -> str | None:
    """What must not run in another directory unasked: what its files may decide."""
    if not all(is_free(redirect) for redirect in part.raw.redirects):
        return "cd and a redirect"
    if part.words and part.inner[0].value.rsplit("/", 1)[-1] == "git":
        return "cd and git"
    return None


def _target(words: Sequence[Word], here: Place) -> tuple[tuple[str, ...] | None, str | None]:
    if words[0].value != "cd":
        return None, f"{words[0].value} leads elsewhere"
    arguments = [word for word in words[1:] if word.value not in ("-L", "-P", "--")]
    if len(arguments) != 1 or arguments[0].value.startswith(("-", "+")) or arguments[0].traits & Trait.GLOB:
        return None, "cd leads elsewhere"
    paths = candidates(arguments[0], here)
    bases = tuple(path for path in paths if path is not None)
    if len(bases) != len(paths):
        return None, "where cd leads is not known"
    wrong = next((base for base in bases if not here.inside(base)), None)
    return tuple(posixpath.normpath(base) for base in bases), wrong and "cd leads out of the working directory"
