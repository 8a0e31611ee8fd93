"""Leaves the tools of features that are off out of the wheel.

Which are on is said by `registry/gates.py`, unless the environment of a build says otherwise:
`RETINUE_FEATURES=+Snip,-REPL`.
"""

from __future__ import annotations

import os
import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REGISTRY = Path("tools/retinue/tools/registry")
VARIABLE = "RETINUE_FEATURES"


def gates_of(known: dict[str, bool], wanted: str) -> dict[str, bool]:
    """What is known, changed by `+Name` and `-Name`; ValueError for anything else."""
    gates = dict(known)
    for word in filter(None, (part.strip() for part in wanted.split(","))):
        if word[0] not in "+-" or word[1:] not in gates:
            raise ValueError(f"{VARIABLE}: {word!r} is none of +NAME, -NAME with a name among {', '.join(gates)}")
        gates[word[1:]] = word[0] == "+"
    return gates


class CustomBuildHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """Runs before the files of a wheel are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        known: dict[str, bool] = runpy.run_path(str(root / REGISTRY / "gates.py"))["GATES"]
        table = runpy.run_path(str(root / REGISTRY / "table.py"))["BASE_TOOLS"]
        gates = gates_of(known, os.environ.get(VARIABLE, ""))
        if version == "editable":
            return
        off = [entry.folder.replace(".", "/") for entry in table if entry.gate and not gates[entry.gate]]
        excluded = self.build_config.target_config.setdefault("exclude", [])
        excluded += [f"/tools/retinue/tools/{folder}" for folder in off]
        if gates != known:
            self._scratch = tempfile.TemporaryDirectory()
            told = Path(self._scratch.name, "gates.py")
            told.write_text(f'"""Which features this build has."""\n\nGATES: dict[str, bool] = {gates!r}\n')
            excluded.append(f"/{REGISTRY.as_posix()}/gates.py")
            build_data["force_include"][str(told)] = "retinue/tools/registry/gates.py"
