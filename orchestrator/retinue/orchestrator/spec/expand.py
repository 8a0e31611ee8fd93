"""`${VAR}` and `${VAR:-default}` in the values of a spec, from a mapping that is passed in; and what of it is secret.

What people write for a model to read is left alone, and a secret may stand only where the tools' environment is given.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping as StringMapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from retinue.orchestrator.spec.problems import Path, Problem, quoted
from retinue.orchestrator.spec.tree import Entry, Mapping, Node, Scalar, Sequence

REDACTED_FROM = 8
PROSE = (
    ("description",),
    ("agents", "*", "prompt"),
    ("agents", "*", "description"),
    ("tasks", "*", "subject"),
    ("tasks", "*", "description"),
)

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_BODY = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.DOTALL)
_SECRET_WORD = re.compile(
    r"(\A|_)(API_?KEY|KEY|TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|PAT|DSN)(\Z|_)", re.IGNORECASE
)
_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s:]*:([^/@\s]+)@", re.IGNORECASE)
_TOKEN_LIKE = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+=.-]{20,}\Z")


class Variables(BaseModel):
    """Which variables a spec used, without their values: enough to see that one has changed. None: it was not set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    salt: str
    hashes: dict[str, str | None]

    def changed(self, env: StringMapping[str, str]) -> tuple[str, ...]:
        """The variables whose value is no longer what it was."""
        return tuple(name for name, was in self.hashes.items() if was != _hash(self.salt, name, env.get(name)))


@dataclass(frozen=True, slots=True)
class Use:
    """One reference in the document. `value` is None where the variable is not set and its default stands."""

    variable: str
    path: Path
    value: str | None


@dataclass(frozen=True, slots=True)
class Expanded:
    root: Node
    uses: tuple[Use, ...]
    problems: tuple[Problem, ...]

    def variables(self, salt: str) -> Variables:
        return Variables(salt=salt, hashes={use.variable: _hash(salt, use.variable, use.value) for use in self.uses})

    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown, longest first; shorter than 8 characters would blacken innocent text."""
        found: set[str] = set()
        for use in self.uses:
            if in_env(use.path) and use.value is not None:
                found |= secret_parts(use.variable, use.value)
        return tuple(sorted(found, key=lambda value: (-len(value), value)))


def is_secret_name(name: str) -> bool:
    return _SECRET_WORD.search(name) is not None


def secret_parts(name: str, value: str) -> set[str]:
    """The value when its name or its look says that it is a secret, and the password inside a URL."""
    parts: set[str] = set()
    if is_secret_name(name) or _TOKEN_LIKE.match(value):
        parts.add(value)
    url = _URL_WITH_PASSWORD.match(value)
    if url is not None:
        parts |= {value, url[1]}
    return {part for part in parts if len(part) >= REDACTED_FROM}


def in_env(path: Path) -> bool:
    return path[:1] == ("env",) or (len(path) > 2 and path[0] in ("agents", "mcp_servers") and path[2] == "env")


def matches(pattern: tuple[str, ...], path: Path) -> bool:
    """Whether a path is the one that the pattern names; `*` is any one key or index."""
    return len(pattern) == len(path) and all(p in ("*", part) for p, part in zip(pattern, path, strict=True))


def expand(root: Node, env: StringMapping[str, str]) -> Expanded:
    """A new tree. A plain value that becomes empty is as if nothing was written."""
    work = _Expansion(env)
    return Expanded(work.node(root, ()), tuple(work.uses), tuple(work.problems))


@dataclass(slots=True)
class _Expansion:
    env: StringMapping[str, str]
    uses: list[Use] = field(default_factory=list[Use])
    problems: list[Problem] = field(default_factory=list[Problem])

    def node(self, node: Node, path: Path) -> Node:
        match node:
            case Mapping():
                entries = {
                    key: Entry(entry.key_mark, self.node(entry.node, (*path, key)))
                    for key, entry in node.entries.items()
                }
                return Mapping(entries, node.mark)
            case Sequence():
                return Sequence(tuple(self.node(item, (*path, i)) for i, item in enumerate(node.items)), node.mark)
            case Scalar():
                return self._scalar(node, path)

    def _scalar(self, node: Scalar, path: Path) -> Scalar:
        if not isinstance(node.value, str) or "${" not in node.value or any(matches(p, path) for p in PROSE):
            return node
        text = _REFERENCE.sub(lambda found: self._reference(found, node, path), node.value)
        return Scalar(None if node.plain and not text else text, node.raw, node.mark, node.plain)

    def _reference(self, found: re.Match[str], node: Scalar, path: Path) -> str:
        if found[0] == "$${":
            return "${"
        body = _BODY.match(found[1]) if found[1] is not None else None
        if body is None:
            what = f"{quoted(found[0])} is no variable"
            self._refuse(node, path, what, "write ${NAME} or ${NAME:-default}, or $${ for the two characters")
            return found[0]
        name, default = body[1], body[2]
        if is_secret_name(name) and not in_env(path):
            what = f"{quoted(name)} looks like a secret, and a secret may stand only under env"
            self._refuse(node, path, what, f"give it there, and write ${name} in the command that needs it")
            return found[0]
        value = self.env.get(name)
        self.uses.append(Use(name, path, value))
        if value or (value is not None and default is None):
            return value
        if default is None:
            self._refuse(node, path, f"the variable {name} is not set", f"set it, or write ${{{name}:-default}}")
            return found[0]
        return default

    def _refuse(self, node: Scalar, path: Path, what: str, remedy: str) -> None:
        self.problems.append(Problem("variable", path, what, found=node.raw, remedy=remedy, mark=node.mark))


def _hash(salt: str, name: str, value: str | None) -> str | None:
    if value is None:
        return None
    return hmac.new(salt.encode(), f"{name}={value}".encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
