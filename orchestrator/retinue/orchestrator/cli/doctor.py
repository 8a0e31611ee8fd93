"""`doctor`: is everything there that a run needs?"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, StateOption

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue
    from rich.text import Text

    from retinue.orchestrator.cli.doctor_checks import Check

_WORDS = {True: ("ok", "green"), False: ("missing", "bold red"), None: ("note", "yellow")}
_INDENT = 25
MISSING = 3


def doctor(state_dir: StateOption = None, as_json: JsonOption = False) -> None:
    """Check this machine for what a run needs, and say what to do.

    Exit code 3 when something that is needed is missing.

    Example:

    retinue doctor
    """
    from retinue.orchestrator.cli.doctor_checks import not_yet, run_checks
    from retinue.orchestrator.cli.machine import ThisMachine

    checks = run_checks(ThisMachine(os.environ, state_dir), os.environ)
    raise typer.Exit(report(checks, frozenset(not_yet()), as_json=as_json))


def report(checks: Iterable[Check], later: frozenset[Check], *, as_json: bool) -> int:
    """Print each finding as soon as it is there; the exit code says whether anything is missing."""
    missing: list[Check] = []
    done: list[Check] = []
    for check in checks:
        done.append(check)
        if check.ok is False:
            missing.append(check)
        if not as_json and check not in later:
            output.show(*_lines(check, _width()))
    if as_json:
        output.write_json({"ok": not missing, "checks": [_json(check) for check in done]})
    else:
        output.say("", "not in this version:")
        output.say(*(_later(check, _width()) for check in done if check in later))
        output.say("", _verdict(missing))
    return MISSING if missing else 0


def _json(check: Check) -> JsonValue:
    return {"name": check.name, "ok": check.ok, "found": check.found, "remedy": check.remedy}


def _later(check: Check, width: int) -> str:
    return textwrap.fill(f"{check.name}: {check.remedy}", width, initial_indent="  ", subsequent_indent="    ")


def _verdict(missing: list[Check]) -> str:
    if missing:
        return f"missing: {', '.join(check.name for check in missing)}"
    return "All that a run needs is there. Next: retinue init"


def _lines(check: Check, width: int) -> list[Text]:
    """The finding, and below it what to do."""
    from rich.text import Text

    from retinue.tools.text import for_terminal

    word, style = _WORDS[check.ok]
    told = [*_wrapped(for_terminal(check.found), width), *_wrapped(for_terminal(check.remedy), width)]
    first = Text.assemble((f"{word:<8} ", style), f"{check.name:<15} ", told[0] if told else "")
    return [first, *(Text(" " * _INDENT + line) for line in told[1:])]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - _INDENT) if text else []


def _width() -> int:
    return max(shutil.get_terminal_size().columns, 2 * _INDENT) if sys.stdout.isatty() else output.PIPE_WIDTH


def register(app: typer.Typer) -> None:
    app.command()(doctor)
