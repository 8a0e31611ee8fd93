"""What the README shows has to work as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from retinue.orchestrator.cli.main import make_command
from retinue.orchestrator.spec.load import load_spec_text

README = (Path(__file__).parents[3] / "README.md").read_text("utf-8")


def test_the_spec_in_the_readme_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    spec = load_spec_text(text, "README.md", env={}).spec
    assert [m.name for m in spec.members()] == ["lea", "coder-1", "coder-2"]


def test_every_command_in_the_readme_exists() -> None:
    known = make_command().commands
    named = set(re.findall(r"^retinue ([a-z]+)", README, re.MULTILINE)) | set(re.findall(r"`retinue ([a-z]+)", README))
    assert named
    assert named <= set(known)


def test_every_file_that_the_readme_names_is_there() -> None:
    root = Path(__file__).parents[3]
    named = set(re.findall(r"`((?:docs|configs)/[\w./-]+)`", README)) | set(
        re.findall(r"\]\((docs/[\w./-]+)\)", README)
    )
    assert named
    assert [name for name in named if not (root / name).exists()] == []
