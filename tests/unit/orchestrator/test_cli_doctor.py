"""What `doctor` prints for what was found, and its exit code."""

from __future__ import annotations

import json

import pytest

from retinue.orchestrator.cli.doctor import report
from retinue.orchestrator.cli.doctor_checks import Check

GIT = Check("git", True, "2.39.5")
KEY = Check("model", None, "no key and no server is set", "set ANTHROPIC_API_KEY")
RAY = Check("Ray", False, "cannot be imported: \x1b[2Jboom", "install retinue again")
LATER = Check("in a spec: hooks", None, "not supported yet", "leave hooks out")


def test_notes_do_not_make_a_machine_unfit(capsys: pytest.CaptureFixture[str]) -> None:
    assert report((GIT, KEY, LATER), frozenset((LATER,)), as_json=False) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok       git             2.39.5",
        "note     model           no key and no server is set",
        "                         set ANTHROPIC_API_KEY",
        "",
        "not in this version:",
        "  in a spec: hooks: leave hooks out",
        "",
        "All that a run needs is there. Next: retinue init",
    ]


def test_what_is_missing_is_said_last_and_makes_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert report((RAY, GIT), frozenset(), as_json=False) == 3
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "missing  Ray             cannot be imported: boom"
    assert out.splitlines()[-1] == "missing: Ray"
    assert "\x1b" not in out


def test_as_json_it_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert report((RAY, KEY), frozenset(), as_json=True) == 3
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "checks": [
            {"name": "Ray", "ok": False, "found": RAY.found, "remedy": "install retinue again"},
            {"name": "model", "ok": None, "found": KEY.found, "remedy": "set ANTHROPIC_API_KEY"},
        ],
    }
