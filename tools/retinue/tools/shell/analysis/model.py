"""What the analysis of a command takes and answers. Named tuples where thousands are made, dataclasses elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from retinue.tools.permissions.rules import Rule

Shell = Literal["bash", "zsh"]
Outcome = Literal["read-only", "allow", "ask", "deny", "hard-stop"]
DisplayClass = Literal["search", "read", "list"]
Status = Literal["simple", "complex", "broken"]

MAX_CHARS = 10_000
MAX_PARTS = 50
MAX_SUGGESTIONS = 5
DEADLINE_MS = 16.0
"""Processor time for one parse; a text may be parsed twice, and all of its analysis is to take less than 50 ms."""


UNPRINTABLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters but tab and newline, and what has no width or turns the direction of a text."""


def names(text: str) -> frozenset[str]:
    """The words of a long list."""
    return frozenset(text.split())


class Trait:
    """What stands in a word besides plain letters. Plain numbers: they are combined for every word of every command."""

    QUOTED: Final = 1
    GLOB: Final = 2
    BRACE: Final = 4
    TILDE: Final = 8
    EXPANSION: Final = 16
    SUBSTITUTION: Final = 32
    ANSI: Final = 64
    ESCAPED: Final = 128
    EQUALS: Final = 256


_LONGEST: Final = 200
_SETTLED: Final = Trait.QUOTED | Trait.ESCAPED


class Word(NamedTuple):
    """One word: as written, and as the shell hands it on. What it would expand stays in `value` as written."""

    raw: str
    value: str
    traits: int

    @property
    def literal(self) -> bool:
        """Whether the value is the argument, whatever lies on the disk and in the environment."""
        return self.traits & ~_SETTLED == 0


class Redirect(NamedTuple):
    """`fd` is empty when the text names none. `target` is the raw word behind the operator."""

    fd: str
    operator: str
    target: str


class RawPart(NamedTuple):
    """One simple command before quoting is resolved. `connector` is the operator before it; empty for the first."""

    connector: str
    negated: bool
    words: tuple[str, ...]
    redirects: tuple[Redirect, ...]


class Part(NamedTuple):
    """One simple command: assignments before it, then what runs; `inner` is what runs behind wrappers."""

    raw: RawPart
    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    inner: Sequence[Word]

    @property
    def program(self) -> str:
        return self.words[0].value if self.words else ""

    @property
    def source(self) -> str:
        """The command as written, with single blanks and without redirects."""
        return " ".join(self.raw.words)


class Reason(NamedTuple):
    """Why a command is not simply approved. `check` is the number of the named check; 0 for everything else.

    `text` may carry words of the command and is for people; only `check` and `kind` belong in logs.
    """

    kind: str
    check: int
    text: str


@dataclass(frozen=True, slots=True)
class Rules:
    """Permission rules as written, of any tool; those that speak neither of Bash, Read nor Edit are ignored."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


NO_RULES = Rules()


def as_written(path: str) -> str:
    """For a disk that nobody looks at: no link leads anywhere."""
    return path


def finds_nothing(_pattern: str) -> Iterable[str | None]:
    """For a disk that nobody looks at: no glob finds anything, and no folder holds any."""
    return ()


def is_ours(_folder: str) -> bool:
    """For a disk that nobody looks at: git finds the repository of the workspace wherever it runs."""
    return True


@dataclass(frozen=True, slots=True)
class Request:
    """`root` is the workspace that `cwd` lies in, `cwd` itself when empty; `allowed` are directories besides these.

    The disk is reached through functions that must not raise: `real` follows the links of an absolute path, `expand`
    names what an absolute glob finds, `below` the files in a folder and all folders in it (both say None for more than
    they look at), and `ours` tells whether git, run in a folder, finds the repository of the workspace and no other.
    """

    command: str
    cwd: str
    home: str
    shell: Shell = "bash"
    allowed: tuple[str, ...] = ()
    rules: Rules = NO_RULES
    real: Callable[[str], str] = as_written
    expand: Callable[[str], Iterable[str | None]] = finds_nothing
    below: Callable[[str], Iterable[str | None]] = finds_nothing
    ours: Callable[[str], bool] = is_ours
    root: str = ""


class Place(NamedTuple):
    """What paths are judged by: `bases` are all folders in which a command may run, the first root the workspace."""

    bases: tuple[str, ...]
    roots: tuple[str, ...]
    real_roots: tuple[str, ...]
    home: str
    real: Callable[[str], str]
    expand: Callable[[str], Iterable[str | None]]
    below: Callable[[str], Iterable[str | None]]
    ours: Callable[[str], bool]

    def inside(self, path: str) -> bool:
        """Whether an absolute path lies in an allowed directory, as it is named and with its links followed."""
        return under(path, self.roots) and under(self.real(path), self.real_roots)


def under(path: str, roots: tuple[str, ...]) -> bool:
    """Whether an absolute path is one of these directories, or lies in one."""
    return any(path == root or path.startswith(root if root == "/" else f"{root}/") for root in roots)


class Need(NamedTuple):
    """A command that the table does not vouch for, and why."""

    part: Part
    where: Place
    why: str

    @property
    def reason(self) -> Reason:
        """For people; shortened, because the words of a command may be as long as the command."""
        name, why = (self.part.program or self.part.source)[:_LONGEST], self.why[:_LONGEST]
        return Reason("part", 0, why if why.startswith(name) else f"{name}: {why}")


class Verdict(NamedTuple):
    """What may become of a command. What a person is told with the question is computed on demand (also in advice).

    `causes` are the rule that decided, what keeps the text from being read, and the checks that objected; `needs` the
    commands that the table does not vouch for.
    """

    command: str
    outcome: Outcome
    status: Status
    causes: tuple[Reason, ...] = ()
    parts: tuple[Part, ...] = ()
    needs: tuple[Need, ...] = ()
    decided_by: Rule | None = None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All causes, and of a command that is not let through also what each of its parts lacks."""
        if self.outcome not in ("ask", "hard-stop"):
            return self.causes
        return tuple(dict.fromkeys((*self.causes, *(need.reason for need in self.needs))))

    @property
    def rule(self) -> str | None:
        """The rule that decided, as it was written."""
        return None if self.decided_by is None else str(self.decided_by)

    @property
    def concurrency_safe(self) -> bool:
        return self.outcome == "read-only"

    @property
    def checks(self) -> frozenset[int]:
        """Numbers of the checks that objected: all that a log may hold."""
        return frozenset(reason.check for reason in self.causes if reason.check)
