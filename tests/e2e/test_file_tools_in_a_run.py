"""An agent that looks at an image and a PDF, searches around what it may not read, and changes a notebook."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfWriter

from support.invariants import violations
from support.live import Bench, bench

pytestmark = pytest.mark.live

BOOK = {
    "cells": [{"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {}, "outputs": [], "source": ["1"]}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
SPEC = (
    "version: 1\nname: files\nmodel: script:script.yaml\nrepo: {path: repo}\n"
    "permissions: {mode: acceptEdits, deny: [Read(secret/**)]}\nagents:\n  ada: {prompt: Look around.}\n"
)
TURNS = [
    {"calls": [{"Read": {"file_path": "plot.png"}}, {"Read": {"file_path": "paper.pdf", "pages": "2"}}]},
    {
        "expect": [
            {
                "tool_result_of": "Read#1",
                "error": False,
                "matches": "image/png, 3000 x 200 pixels, shown with 2000 x 133",
            },
            {"tool_result_of": "Read#2", "error": False, "matches": "PDF, page 2 of 3"},
        ],
        "calls": [
            {"Grep": {"pattern": "needle"}},
            {"Grep": {"pattern": "needle", "path": "secret"}},
            {"Read": {"file_path": "a.ipynb"}},
        ],
    },
    {
        "expect": [
            {"tool_result_of": "Grep#1", "error": False, "matches": r"\Aopen.txt\Z"},
            {"tool_result_of": "Grep#2", "error": True},
            {"tool_result_of": "Read", "matches": '<cell id="one" type="code"'},
        ],
        "calls": {"NotebookEdit": {"notebook_path": "a.ipynb", "cell_id": "one", "new_source": "2"}},
    },
    {"expect": {"tool_result_of": "NotebookEdit", "error": False, "matches": "Replaced code cell one"}, "say": "Done."},
]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def prepare(place: Bench) -> None:
    """Files that are no text are committed as well."""
    place.make_repo(
        {"open.txt": "needle\n", "secret/key.txt": "needle\n", "a.ipynb": json.dumps(BOOK, indent=1) + "\n"}
    )
    image, paper = BytesIO(), PdfWriter()
    Image.new("RGB", (3_000, 200), "red").save(image, "PNG")
    for _ in range(3):
        paper.add_blank_page(100, 100)
    (place.repo / "plot.png").write_bytes(image.getvalue())
    paper.write(place.repo / "paper.pdf")
    place.git("add", "--all")
    place.git("commit", "--quiet", "--message", "A plot and a paper")
    (place.root / "spec.yaml").write_text(SPEC)
    (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": TURNS}}))


def test_what_is_no_text_is_seen_and_kept_beside_the_ledger(place: Bench) -> None:
    prepare(place)
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust")
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = place.run_dir("r") / "ledger.rlog"
    assert violations(ledger) == []
    assert place.view("r").agents["ada~1"].last_text == "Done."
    kept = {path.suffix: path for path in (place.run_dir("r") / "tool-results").rglob("m-*")}
    assert set(kept) == {".png", ".pdf"}
    assert Image.open(BytesIO(kept[".png"].read_bytes())).size == (2_000, 133)
    for path in kept.values():
        assert base64.b64encode(path.read_bytes())[:60] not in ledger.read_bytes()
        assert path.stat().st_mode & 0o077 == 0


def test_the_trees_of_people_are_left_alone(place: Bench) -> None:
    prepare(place)
    before = _bytes(place.repo)
    assert place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust").returncode == 0
    assert _bytes(place.repo) == before


def _bytes(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
