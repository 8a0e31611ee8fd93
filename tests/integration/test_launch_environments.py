"""What a launch keeps readable for commands, wherever it lies."""

from __future__ import annotations

from pathlib import Path

from retinue.orchestrator.prepare import environments


def test_environments_on_the_search_path_are_whole_and_others_are_their_folder(tmp_path: Path) -> None:
    for folder in ("venv/bin", "tools", "own"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").touch()
    path = f"{tmp_path}/venv/bin:{tmp_path}/tools::bin:/:{tmp_path}/tools"
    assert environments(path, tmp_path / "own") == (tmp_path / "venv", tmp_path / "tools", tmp_path / "own")
