"""Which commands run in the sandbox. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from retinue.tools.base import ToolContext
from retinue.tools.permissions.rules import Rule
from retinue.tools.shell.analysis.model import Part
from retinue.tools.shell.analysis.readonly import is_free
from retinue.tools.shell.analysis.rules import ShellRules, covering
from retinue.tools.shell.bash.schema import BashInput
from retinue.tools.shell.commands import by_text
from retinue.tools.shell.sandbox.policy import SandboxUse


def confined(args: BashInput, ctx: ToolContext) -> bool:
    """Whether the command runs in the sandbox of this context."""
    return is_confined(args.command, ctx.sandbox, asks_out=args.disable_sandbox)


def is_confined(command: str, use: SandboxUse, *, asks_out: bool) -> bool:
    """Not where there is none, where it may and wants to leave, or where settings exclude every part of it."""
    if use.state != "on" or (asks_out and use.allow_unconfined):
        return False
    return not is_excluded(command, use.excluded)


def is_excluded(command: str, patterns: Sequence[str]) -> bool:
    """Whether each part of the command, as the shell will run it, fits one of the patterns."""
    if not patterns:
        return False
    case = by_text(command)
    rules = _rules(tuple(patterns))
    return case.is_simple and all(_fits(part, rules) for part in case.reading.parts)


def _fits(part: Part, rules: ShellRules) -> bool:
    return covering(rules, part) is not None and all(map(is_free, part.raw.redirects))


@lru_cache(maxsize=16)
def _rules(patterns: tuple[str, ...]) -> ShellRules:
    return ShellRules(allow=tuple(Rule("allow", "Bash", pattern) for pattern in patterns))
