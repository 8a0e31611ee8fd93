"""How `retinue --help` groups the commands: in the order in which a person needs them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from typer.core import TyperGroup

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Begin", ("doctor", "init", "schema", "validate", "plan", "trust")),
    ("Run", ("up", "run", "resume", "send", "stop", "down")),
    ("Look", ("ps", "status", "logs", "tasks", "diff")),
    ("Finish", ("land", "clean")),
    ("More", ("why", "explain-command", "tools", "cluster", "model")),
)
_EXAMPLE = "Example:\n\n"


def keep_examples_whole(group: TyperGroup) -> None:
    """Help texts are wrapped, but what is to be typed stays on its line (`\\b` says so)."""
    group.help = _whole(group.help)
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            keep_examples_whole(command)
        else:
            command.help = _whole(command.help)


def _whole(text: str | None) -> str:
    return (text or "").replace(_EXAMPLE, f"{_EXAMPLE}\b\n")


class _Formatter(Protocol):
    width: int

    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class Sections(TyperGroup):
    def format_commands(self, ctx: Any, formatter: _Formatter) -> None:
        del ctx
        widest = max(len(name) for name in self.commands)
        for title, names in self._sections():
            rows = [
                (name.ljust(widest), self.commands[name].get_short_help_str(formatter.width - widest - 4))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return [name for _, names in self._sections() for name in names]

    def _sections(self) -> list[tuple[str, list[str]]]:
        placed = {name for _, names in SECTIONS for name in names}
        shown = [(title, [name for name in names if name in self.commands]) for title, names in SECTIONS]
        rest = [name for name in self.commands if name not in placed]
        return [(title, names) for title, names in (*shown, ("Other", rest)) if names]
