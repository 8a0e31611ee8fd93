"""The command line, called in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from retinue.orchestrator.cli.main import main
from retinue.orchestrator.state.paths import StateDir

Json = dict[str, JsonValue]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Json:
        return cast(Json, json.loads(self.out))


@dataclass(frozen=True)
class Cli:
    """`retinue` with a state directory of its own."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def state(self) -> StateDir:
        return StateDir(self.root)

    def __call__(self, *args: str | Path) -> Answer:
        self.capsys.readouterr()
        code = main([str(arg) for arg in args])
        caught = self.capsys.readouterr()
        return Answer(code, caught.out, caught.err)

    def at(self, *args: str | Path) -> Answer:
        """A command that looks at runs."""
        return self(*args, "--state-dir", self.root)
