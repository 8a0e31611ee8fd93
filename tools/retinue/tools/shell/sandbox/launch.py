"""The small programs of ours that start a command inside of its sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from retinue.tools.shell.sandbox.policy import SandboxPolicy

_FOLDER = Path(__file__).parent


def program(name: str, arguments: Sequence[str]) -> list[str]:
    """A command line that runs `main` of a module of this folder, with the standard library and nothing else."""
    start = f"import sys; sys.path.append({str(_FOLDER)!r}); import {name}; {name}.main()"
    return [os.path.realpath(sys.executable), "-I", "-S", "-E", "-c", start, *arguments]


def seen(policy: SandboxPolicy, *more: Path) -> SandboxPolicy:
    """With what these programs need to be read, wherever it lies."""
    needed = (Path(os.path.realpath(sys.executable)), Path(os.path.realpath(os.__file__)).parent, _FOLDER, *more)
    return replace(policy, readable=(*policy.readable, *needed))
