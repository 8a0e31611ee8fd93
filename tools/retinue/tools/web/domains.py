"""Which hosts a pattern of a domain rule fits. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

PREFIX = "domain:"


def subject_name(host: str) -> str:
    """What a rule like `WebFetch(domain:example.com)` is compared with."""
    return f"{PREFIX}{host}"


def rule_fits(content: str, name: str) -> bool:
    """Whether the content of a rule fits a `subject_name`. What is no domain pattern fits nothing."""
    content, name = content.strip(), name.strip()
    if not content.startswith(PREFIX) or not name.startswith(PREFIX):
        return False
    return fits(content.removeprefix(PREFIX), name.removeprefix(PREFIX))


def fits(pattern: str, host: str) -> bool:
    """`h` is that host alone; `*.h` all below it, but not `h`; `*` all; any other `*` is part of one label."""
    host = normal(host)
    return bool(host) and _compiled(pattern).fullmatch(host) is not None


def covers(domain: str, host: str) -> bool:
    """For lists of a search: the domain itself, and everything below it."""
    return fits(domain, host) or fits(f"*.{domain}", host)


def normal(host: str) -> str:
    """Lower case, without the dot at the end, in the form that is sent: a name with other letters is encoded."""
    text = host.strip().rstrip(".").lower()
    return text if text.isascii() else ".".join(_encoded(label) for label in text.split("."))


def _encoded(label: str) -> str:
    import idna  # here, because its tables are large and few hosts need them

    if label.isascii() or "*" in label:
        return label
    try:
        return idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = normal(pattern)
    if text == "*":
        return re.compile(".+")
    lead = r"(?:[^.]+\.)+" if text.startswith("*.") else ""
    rest = text[2:] if lead else text
    return re.compile(lead + "[^.]*".join(re.escape(piece) for piece in rest.split("*")))
