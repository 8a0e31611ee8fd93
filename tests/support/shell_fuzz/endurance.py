"""How long the analysis takes with one text, whatever else this machine does."""

from __future__ import annotations

import gc
import time

from retinue.tools.shell.analysis.advice import display_class, suggested_rules, warnings_of
from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.exit_codes import is_error
from retinue.tools.shell.analysis.model import NO_RULES, Request, Rules, Shell

LIMIT_MS = 50.0
TRIES = 6
_RULES = Rules(
    allow=("Bash(make:*)", "Bash(npm run *)", "Bash(ls)"),
    ask=("Bash(git push:*)",),
    deny=("Bash(curl:*)", "Read(./secret/**)", "Edit(*.lock)"),
)


def analyse_all_ways(text: str) -> None:
    """Both shells, with rules and without, and what a person is told."""
    ways: tuple[tuple[Shell, Rules], ...] = (("bash", NO_RULES), ("zsh", _RULES))
    for shell, rules in ways:
        verdict = analyse(Request(text, "/home/me/tree", "/home/me", shell, (), rules))
        suggested_rules(verdict)
        display_class(verdict)
        warnings_of(verdict)
        is_error(verdict.parts, 1)


def slow(text: str) -> float | None:
    """Milliseconds of processor time that the verdict takes at best of some tries, where that is too long."""
    best = _verdict_ms(text)
    for _ in range(TRIES):
        if best <= LIMIT_MS:
            return None
        gc.collect()
        best = min(best, _verdict_ms(text))
    return best if best > LIMIT_MS else None


def _verdict_ms(text: str) -> float:
    begun = time.process_time()
    analyse(Request(text, "/home/me/tree", "/home/me", "bash", (), _RULES))
    return (time.process_time() - begun) * 1000
