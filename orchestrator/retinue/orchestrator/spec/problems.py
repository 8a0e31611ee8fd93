"""What is wrong with a spec, as data, and the one text that a person reads. Knows nothing of YAML or of the model."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from retinue.tools.errors import SpecError

Path = tuple[str | int, ...]
Kind = Literal[
    "syntax",
    "duplicate_key",
    "unknown_key",
    "missing",
    "value",
    "variable",
    "override",
    "not_supported",
    "duplicate",
    "unknown_owner",
    "unknown_task",
    "cycle",
    "team",
    "environment",
]

SHOWN_AT_MOST = 50
_URL_USER = re.compile(r"://[^/@\s]+@")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text. Line and column count from 1; line 0 is a flag of the command line, named by `file`."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that its author has to change. `what` says it in words; the other fields are for programs as well.

    `on_key` asks for the place of the key and not of its value. `mark` is set by whoever knows the document.
    """

    kind: Kind
    path: Path
    what: str
    found: str = ""
    allowed: tuple[str, ...] = ()
    suggestion: str = ""
    remedy: str = ""
    on_key: bool = False
    mark: Mark = Mark("spec")

    def at(self, mark: Mark) -> Problem:
        return replace(self, mark=mark)

    @property
    def text(self) -> str:
        """The message without its place: what is wrong, what is allowed, and what to do."""
        parts = [self.what]
        if self.allowed:
            parts.append(f"allowed: {', '.join(self.allowed)}")
        if self.suggestion:
            parts.append(f"did you mean {quoted(self.suggestion)}?")
        if self.remedy:
            parts.append(self.remedy)
        return printable("; ".join(parts))

    def __str__(self) -> str:
        where = dotted(self.path)
        return f"{self.mark}: {where}: {self.text}" if where else f"{self.mark}: {self.text}"


class InvalidSpec(SpecError):
    """Every problem of one spec at once. The message is the whole list; `problems` is the same for programs."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


def invalid(name: str, problems: Iterable[Problem]) -> InvalidSpec:
    """Sorted by place; what stands at the same place keeps its order, and the same text is said once."""
    ordered = sorted(dict.fromkeys(problems), key=lambda p: (p.mark.line == 0, p.mark.line, p.mark.column))
    count = len(ordered)
    lines = [f"{count} problem{'' if count == 1 else 's'} in {printable(name)}"]
    lines += [str(problem) for problem in ordered[:SHOWN_AT_MOST]]
    if count > SHOWN_AT_MOST:
        lines.append(f"… and {count - SHOWN_AT_MOST} more")
    return InvalidSpec("\n".join(lines), tuple(ordered))


def nearest(word: str, choices: Iterable[str]) -> str:
    """The choice that the author probably meant, or nothing."""
    exact = {choice.lower(): choice for choice in choices}
    if word.lower() in exact:
        return exact[word.lower()]
    close = difflib.get_close_matches(word.lower()[:80], list(exact), n=1, cutoff=0.7)
    return exact[close[0]] if close else ""


def dotted(path: Path) -> str:
    """`tasks[0].owner`; a key that is no plain word is quoted, so that the path stays readable and harmless."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if _PLAIN_KEY.match(part) and len(part) <= 60 else quoted(part)
            text += f".{key}" if text else key
    return text


def quoted(text: str, limit: int = 60) -> str:
    """In double quotes, cut, on one line, and without the password of a URL."""
    text = _URL_USER.sub("://…@", text)
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return f'"{printable(cut)}"'


def printable(text: str) -> str:
    """Text from a spec may hold terminal controls; shown, they are escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode("ascii") for c in text)


def listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
