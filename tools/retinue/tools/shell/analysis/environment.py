"""Variables that may stand before a command without changing what it runs, and those that always do."""

from __future__ import annotations

import re

from retinue.tools.shell.analysis.model import Trait, Word, names

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?(\+?)=")

SAFE = names(
    """
    GOEXPERIMENT GOOS GOARCH CGO_ENABLED GO111MODULE RUST_BACKTRACE RUST_LOG NODE_ENV PYTHONUNBUFFERED
    PYTHONDONTWRITEBYTECODE LANG LANGUAGE LC_ALL LC_CTYPE LC_TIME LC_COLLATE LC_MESSAGES LC_NUMERIC LC_MONETARY
    CHARSET TERM COLORTERM NO_COLOR FORCE_COLOR CLICOLOR TZ LS_COLORS LSCOLORS GREP_COLORS GCC_COLORS TIME_STYLE
    BLOCK_SIZE
    """
)
"""They change how something is shown or compiled, never what is loaded or run. 32 of them."""

LOADERS = re.compile(
    r"PATH|LD_.*|DYLD_.*|.*PATH|IFS|ENV|BASH_.*|SHELL.*|PS[0-4]|PROMPT_COMMAND|.*_OPTIONS|.*OPTS|.*_COMMAND"
    r"|GIT_.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|HOME|npm_config_.*|PYTHON(?!UNBUFFERED|DONTWRITE).*|PERL.*|RUBY.*"
)
"""They name what is loaded or run: no reusable rule is offered for a command behind one."""


def is_assignment(raw: str) -> bool:
    return "=" in raw and ASSIGNMENT.match(raw) is not None


def is_safe(word: Word) -> bool:
    """A known variable, set as a whole to a literal without a path."""
    found = ASSIGNMENT.match(word.raw)
    if found is None or found[1] not in SAFE or found[2] or found[3]:
        return False
    literal = word.traits & ~(Trait.QUOTED | Trait.GLOB | Trait.TILDE) == 0
    value = word.value[found.end() :]
    return literal and not value.startswith((":", "/", "~", ".")) and ".." not in value


def loads(word: Word) -> bool:
    found = ASSIGNMENT.match(word.raw)
    return found is not None and LOADERS.fullmatch(found[1]) is not None
