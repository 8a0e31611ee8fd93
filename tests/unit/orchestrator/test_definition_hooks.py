"""Hooks in the front matter of agent definitions: read when trusted, named when not, off with all others."""

from __future__ import annotations

import pytest

from retinue.orchestrator.settings.definitions import read_definition
from retinue.tools.settings.merge import SourcedFile, merged
from retinue.tools.settings.model import Layer, SettingsFile

TEXT = """---
name: builder
description: builds
hooks:
  Stop:
    - hooks:
        - type: command
          command: "./check.sh --all"
# a remark
tools: Bash, Read
---
You build.
"""
STOP = {"Stop": [{"hooks": [{"type": "command", "command": "./check.sh --all"}]}]}


def test_a_trusted_definition_brings_its_hooks():
    found = read_definition(TEXT.encode(), "a.md", trusted=True)
    assert found.definition is not None
    assert (found.definition.hooks, found.definition.tools) == (STOP, ("Bash", "Read"))
    assert (found.warnings, found.withheld) == ((), ())


def test_one_that_is_not_trusted_does_not_and_says_so():
    found = read_definition(TEXT.encode(), "a.md", trusted=False)
    assert found.definition is not None
    assert found.definition.hooks == {}
    assert found.withheld == ("a.md: hooks",)


@pytest.mark.parametrize(
    ("hooks", "warning"),
    [
        ("hooks: [", "a.md: hooks: they cannot be read, and are not run"),
        ("hooks: yes", "a.md: hooks: they cannot be read, and are not run"),
        ("hooks:\n  Stop: 5", 'a.md: hooks.Stop: write a list of {"matcher": …, "hooks": […]}; its hooks are not run'),
        ("hooks:\n  Nope: []", "a.md: hooks.Nope: there is no such event here, its hooks are never run"),
    ],
)
def test_hooks_that_cannot_be_read_are_named_and_not_run(hooks: str, warning: str):
    text = f"---\nname: builder\ndescription: builds\n{hooks}\n---\nYou build.\n"
    found = read_definition(text.encode(), "a.md", trusted=True)
    assert found.definition is not None
    assert found.warnings == (warning,)


@pytest.mark.parametrize(("layer", "key"), [("user", "disable_all_hooks"), ("policy", "allow_managed_hooks_only")])
def test_where_hooks_are_off_only_those_of_a_policy_stay(layer: Layer, key: str):
    """Those of definitions are among the others: `only_policy_hooks` keeps them out."""
    said = SettingsFile.model_validate({"hooks": STOP})
    files = [SourcedFile("user", "u.json", said), SourcedFile("policy", "p.json", said)]
    assert [hook.file for hook in merged(files).settings.hooks] == ["u.json", "p.json"]
    assert not merged(files).settings.only_policy_hooks
    off = merged([*files, SourcedFile(layer, "o.json", SettingsFile.model_validate({key: True}))]).settings
    assert ([hook.file for hook in off.hooks], off.only_policy_hooks) == (["p.json"], True)
