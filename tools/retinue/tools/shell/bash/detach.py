"""When a command goes on without its call. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retinue.tools.shell.analysis.reading import read
from retinue.tools.shell.bash.constants import DEFAULT_TIMEOUT_MS, GRACE_S, MAX_TIMEOUT_MS
from retinue.tools.shell.bash.schema import BashInput

_GIT = re.compile(r"\bgit\b")


@dataclass(frozen=True, slots=True)
class Terms:
    """
    wait_s        how long the call waits, and then lets the command go on in the background; None: to its end
    timeout_s     when the command is stopped, as long as it is its call's
    background_s  when it is stopped in the background, counted from its start; None: never
    """

    wait_s: float | None
    timeout_s: float
    background_s: float | None = None


def terms_of(args: BashInput, after_s: float | None, *, background: bool) -> Terms:
    """`after_s` is how long any command may block a turn; `background` says whether there is a background."""
    timeout_s = min(args.timeout or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS) / 1000
    if not background:
        return Terms(None, timeout_s)
    if args.run_in_background:
        return Terms(0.0, timeout_s, None if args.timeout is None else timeout_s)
    if not may_be_detached(args.command):
        return Terms(None, timeout_s)
    return Terms(min(timeout_s, after_s or timeout_s), timeout_s + GRACE_S)


def may_be_detached(command: str) -> bool:
    """Not what only waits, what may hold git's locks or move branches, or what nobody can read with certainty."""
    if _GIT.search(command):
        return False
    reading = read(command)
    if reading.status == "broken":
        return False
    first = reading.parts[0].inner if reading.parts else ()
    return not first or first[0].value.rsplit("/", 1)[-1] != "sleep"
