"""Whether the words that the analysis reads off a text are those that bash hands to its programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retinue.tools.shell.analysis.model import Part, Trait, Verdict, Word, names
from retinue.tools.shell.analysis.readonly import is_free
from support.shell_fuzz.judge import fits, tails_of

_NOT_CALLED = names(
    "[[ ! { } (( coproc if then else elif fi for while until do done case esac in select function enable"
) | {""}
"""Words of the language, and the one builtin that the notes need. What begins with % is a job, if anything."""
_OPEN = ~(Trait.QUOTED | Trait.ESCAPED | Trait.GLOB | Trait.ANSI)
"""Traits of words that become others even where no name is expanded; ANSI quoting is compared too."""


def comparable(verdict: Verdict) -> bool:
    """Whether nothing but the words decides what is called: no redirect that fails, no path, no assignment."""
    return verdict.status == "simple" and all(map(_is_plain, verdict.parts))


def _is_plain(part: Part) -> bool:
    if part.assignments or part.raw.negated or not all(map(is_free, part.raw.redirects)):
        return False
    named = next((word for word in part.words if word.value not in ("time", "-p")), None)
    if named is None or not all(map(_settled, (part.words[0], named))):
        return False
    return not any(
        "/" in word.value or word.value[:1] == "%" or word.value in _NOT_CALLED for word in (part.words[0], named)
    )


def _settled(word: Word) -> bool:
    return word.traits & _OPEN == 0


def difference(verdict: Verdict, called: Iterable[Sequence[str]]) -> str | None:
    """The first call that no part explains, or the first part that was never called; None when both are the same."""
    tails = [[_without_glob(word) for word in tail] for part in verdict.parts for tail in tails_of(part)]
    found = [tuple(call) for call in called]
    for call in found:
        if not any(fits(tail, call) for tail in tails):
            return f"{call!r} was called and is not among the parts"
    if any(part.raw.connector == "&" for part in verdict.parts) or verdict.command.rstrip().endswith("&"):
        return None  # what runs in the background may not have noted itself yet
    for part in verdict.parts:
        words = [_without_glob(word) for word in part.words]
        behind = [words[at:] for at in range(len(words)) if at == 0 or words[0].value == "time"]
        if not any(fits(tail, call) for tail in behind if tail for call in found):
            return f"{[word.value for word in part.words]!r} was reported and never called"
    return None


def _without_glob(word: Word) -> Word:
    """For a shell that expands no names."""
    return word._replace(traits=word.traits & ~(Trait.GLOB | Trait.ANSI))
