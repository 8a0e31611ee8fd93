"""The patterns of rules for commands: one text, a prefix (`make:*`), or wildcards. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_SPACE = re.compile(r"\s+")
_UNESCAPED_STAR = re.compile(r"(?<!\\)\*")

UNCOVERED = frozenset(("retinue", "ray", "tmux"))
"""Commands that no allow rule covers: whoever runs them acts with the power of the human."""


def is_exact(content: str) -> bool:
    """Whether a rule names one text, and neither a prefix nor a wildcard."""
    return _UNESCAPED_STAR.search(content) is None


def literal(content: str) -> str:
    """The one text that an exact rule names."""
    return content.replace("\\*", "*").strip()


@lru_cache(maxsize=1024)
def pattern_of(content: str) -> re.Pattern[str]:
    """`make:*` and `make *`: `make` alone or with words behind it. `ls*` has no word boundary. `\\*` is a star."""
    text = content.strip()
    bare = ""
    if text.endswith(":*") or (text.endswith(" *") and len(_UNESCAPED_STAR.findall(text)) == 1):
        text, bare = text[:-2], r"(?:\s.*)?"
    pieces = [re.escape(piece.replace("\\*", "*")) for piece in _UNESCAPED_STAR.split(_SPACE.sub(" ", text))]
    return re.compile(".*".join(pieces) + bare, re.DOTALL)
