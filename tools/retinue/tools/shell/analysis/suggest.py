"""Which rules could be offered with the question, so that it need not be asked again. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retinue.tools.permissions.commands import UNCOVERED
from retinue.tools.shell.analysis.effects import EXTRACTED
from retinue.tools.shell.analysis.environment import is_safe, loads
from retinue.tools.shell.analysis.model import MAX_SUGGESTIONS, Part, Trait, Word, names
from retinue.tools.shell.analysis.wrappers import NEVER_COVERED, RUNNERS, SHELLS

_VERB = re.compile(r"[a-z][a-z0-9]*(?:[-:][a-z0-9]+)*\Z")
_PROGRAM = re.compile(r"[A-Za-z0-9][\w.+-]*\Z")
_INTERPRETERS = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua|tclsh|Rscript|osascript)[0-9.]*\Z")
_NO_VERBS = names(
    """
    kill pkill killall pytest npx pnpx bunx curl wget open vim vi
    """
)
_RUNS_ANYTHING = frozenset((("docker", "exec"), ("docker", "run"), ("kubectl", "exec"), ("npm", "exec"), ("uv", "run")))
_LONGEST = 200


def suggestions(parts: Sequence[Part]) -> tuple[str, ...] | None:
    """One rule for each command that needs one, without repetition; None when one of them can have none."""
    rules: dict[str, None] = {}
    for part in parts:
        rule = _rule(part)
        if rule is None:
            return None
        rules[f"Bash({rule})"] = None
    return tuple(rules) if len(rules) <= MAX_SUGGESTIONS else None


def _rule(part: Part) -> str | None:
    if not part.words or any(loads(assignment) for assignment in part.assignments):
        return None
    words = part.inner
    name = words[0].value.rsplit("/", 1)[-1]
    if any(word.traits & (Trait.EXPANSION | Trait.SUBSTITUTION) for word in part.words):
        return None
    if (
        name in SHELLS
        or name in NEVER_COVERED
        or name in UNCOVERED
        or (name in RUNNERS and name not in EXTRACTED | {"npx"})
    ):
        return None
    wrapped = words is not part.words
    if wrapped and "/" in words[0].value:
        return None
    if all(is_safe(assignment) for assignment in part.assignments) and (prefix := _prefix(words)) is not None:
        return f"{prefix}:*"
    if name == "git" and len(words) > 1 and words[1].value.startswith(("-c", "--config", "--git-dir", "--exec-path")):
        return None
    exact = " ".join(part.raw.words)
    return exact.replace("*", "\\*") if len(exact) <= _LONGEST and "\n" not in exact else None


def _prefix(words: Sequence[Word]) -> str | None:
    """A program and its sub-command, where the second word is one."""
    if len(words) < 2:
        return None
    program, verb = words[0], words[1]
    if program.traits or verb.traits or not _PROGRAM.match(program.value) or not _VERB.match(verb.value):
        return None
    name = program.value
    if name in EXTRACTED or name in _NO_VERBS or _INTERPRETERS.match(name) or (name, verb.value) in _RUNS_ANYTHING:
        return None
    return f"{name} {verb.value}"
