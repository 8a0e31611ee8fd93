"""How a command is folded when it is shown: by what all of its parts have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.tools.shell.analysis.model import DisplayClass, Part
from retinue.tools.shell.analysis.readonly import is_free

_CLASSES: dict[str, DisplayClass] = {
    **dict.fromkeys(
        ("find", "grep", "rg", "ag", "ack", "locate", "which", "whereis", "fd", "egrep", "fgrep"), "search"
    ),
    **dict.fromkeys(
        ("cat", "head", "tail", "less", "more", "wc", "stat", "file", "jq", "awk", "cut", "sort", "uniq", "tr"), "read"
    ),
    **dict.fromkeys(("ls", "tree", "du"), "list"),
}
_NEUTRAL = frozenset(("echo", "printf", "true", "false", ":", "cd"))


def display_class(parts: Iterable[Part]) -> DisplayClass | None:
    """The class of the first part that has one, when every part that is not neutral has one."""
    first: DisplayClass | None = None
    for part in parts:
        if not part.words or not all(is_free(redirect) for redirect in part.raw.redirects):
            return None
        name = part.inner[0].value
        if name in _NEUTRAL:
            continue
        found = _CLASSES.get(name)
        if found is None:
            return None
        first = first or found
    return first
