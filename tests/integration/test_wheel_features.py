"""The wheel holds the tools of the features that were built in, and no file of the others."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from retinue.tools.registry.gates import GATES
from retinue.tools.registry.table import BASE_TOOLS

ROOT = Path(__file__).parents[2]
GATED = {entry.gate: f"retinue/tools/{entry.folder.replace('.', '/')}/" for entry in BASE_TOOLS if entry.gate}


def build(folder: Path, features: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    env = {**os.environ, "RETINUE_FEATURES": features}
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True)


def wheel(folder: Path, features: str) -> Path:
    done = build(folder, features)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def gates_in(made: Path) -> set[str]:
    """The features of which the wheel has files."""
    names = zipfile.ZipFile(made).namelist()
    assert "retinue/tools/files/read/tool.py" in names
    assert "retinue/tools/files/read/prompt.md" in names
    assert names.count("retinue/tools/registry/gates.py") == 1
    return {gate for gate, folder in GATED.items() if any(name.startswith(folder) for name in names)}


def test_a_wheel_has_what_is_on_and_no_file_of_what_is_off(tmp_path: Path) -> None:
    assert gates_in(wheel(tmp_path, "")) == {gate for gate in GATED if GATES[gate]}


def test_a_build_may_turn_every_feature_round_and_its_registry_copes(tmp_path: Path) -> None:
    turned = {gate: not GATES[gate] for gate in GATED}
    made = wheel(tmp_path, ",".join(f"{'+' if on else '-'}{gate}" for gate, on in turned.items()))
    on = {gate for gate, is_on in turned.items() if is_on}
    assert gates_in(made) == on
    tree = tmp_path / "tree"
    zipfile.ZipFile(made).extractall(tree)
    listing = "from retinue.tools.registry.builtin import *; print(*(t.name for t in builtin_tools()), sep='\\n')"
    code = f"import sys; sys.path.insert(0, {str(tree)!r}); {listing}"
    site = [path for path in sys.path if path.endswith("site-packages")]
    env = {"PYTHONPATH": os.pathsep.join(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    named = {entry.name for entry in BASE_TOOLS if not entry.gate or entry.gate in on}
    assert set(done.stdout.split()) == named


@pytest.mark.parametrize("features", ["Snip", "+Nothing", "+snip"])
def test_a_build_with_a_feature_that_is_none_is_refused(tmp_path: Path, features: str) -> None:
    done = build(tmp_path, features)
    assert done.returncode != 0
    assert f"RETINUE_FEATURES: {features!r} is none of +NAME, -NAME" in done.stderr
    assert not list(tmp_path.glob("*.whl"))
