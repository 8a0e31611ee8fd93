"""Settings of several files: which value stands, and what an untrusted file may still say."""

from __future__ import annotations

import itertools

import pytest

from retinue.tools.settings.merge import SourcedFile, merged
from retinue.tools.settings.model import LAYERS, Layer, SettingsFile


def file(source: Layer, *, trusted: bool = True, foreign: bool = False, **said: object) -> SourcedFile:
    return SourcedFile(source, f"{source}.json", SettingsFile.model_validate(said), trusted=trusted, foreign=foreign)


def rules(**said: list[str] | str) -> dict[str, object]:
    return {"permissions": said}


def test_each_layer_overrides_those_before_it_in_whatever_order_files_are_read() -> None:
    files = [
        file(layer, **rules(defaultMode="acceptEdits" if n % 2 else "dontAsk"), env={"A": layer})
        for n, layer in enumerate(LAYERS)
    ]
    for order in itertools.permutations(files):
        found = merged(order)
        assert (found.settings.mode, found.env) == ("dontAsk", {"A": "policy"})


def test_lists_add_up_and_variables_are_replaced_by_name() -> None:
    found = merged(
        [
            file("user", **rules(allow=["Read"], additionalDirectories=["/a"]), env={"A": "1", "B": "1"}),
            file("project", **rules(allow=["Glob"], additionalDirectories=["/a", "/b"]), env={"B": "2"}),
        ]
    )
    assert [(each.source, each.allow) for each in found.settings.rules] == [("user", ("Read",)), ("project", ("Glob",))]
    assert found.settings.extra_dirs == ("/a", "/b")
    assert found.env == {"A": "1", "B": "2"}


def test_an_untrusted_file_may_only_forbid() -> None:
    said = {
        "permissions": {"allow": ["Bash"], "ask": ["Edit"], "deny": ["Read(.env)"], "additionalDirectories": ["/a"]},
        "env": {"A": "1"},
        "hooks": {"Stop": []},
        "web": {"search": {"server_side": True}},
        "disableAllHooks": True,
    }
    mine = file("user", hooks={"PreToolUse": []})
    found = merged([mine, file("project", trusted=False, **said)])
    (theirs,) = found.settings.rules
    assert (theirs.allow, theirs.ask, theirs.deny) == ((), ("Edit",), ("Read(.env)",))
    assert (found.env, found.settings.extra_dirs, found.settings.web.search.server_side) == ({}, (), False)
    assert [hook.source for hook in found.settings.hooks] == ["user"]
    assert found.withheld == (
        "project.json: 1 allow rule, 1 variable, 1 event with hooks, 1 further folder, where to search the web",
    )


@pytest.mark.parametrize(
    ("mode", "counts"), [("plan", True), ("dontAsk", True), ("acceptEdits", False), ("bypassPermissions", False)]
)
def test_of_an_untrusted_file_only_a_mode_that_grants_nothing_counts(mode: str, counts: bool) -> None:
    found = merged([file("project", trusted=False, **rules(defaultMode=mode))])
    assert (found.settings.mode, bool(found.withheld)) == (mode if counts else None, not counts)


def test_one_key_leaves_out_all_foreign_files_and_no_untrusted_file_can_turn_it() -> None:
    theirs = file("project", foreign=True, **rules(deny=["Bash"]))
    assert merged([theirs, file("user", compatibility=False)]).settings.rules == ()
    assert merged([theirs, file("local", trusted=False, compatibility=False)]).settings.rules != ()


def test_a_policy_may_leave_only_its_own_grants_and_hooks_but_never_takes_away_what_others_forbid() -> None:
    policy = file(
        "policy",
        allowManagedPermissionRulesOnly=True,
        allowManagedHooksOnly=True,
        hooks={"Stop": []},
        **rules(allow=["Read"]),
    )
    found = merged([policy, file("user", hooks={"Stop": []}, **rules(allow=["Bash"], deny=["Edit"]))]).settings
    assert [(each.source, each.allow, each.deny) for each in found.rules] == [
        ("user", (), ("Edit",)),
        ("policy", ("Read",), ()),
    ]
    assert [hook.source for hook in found.hooks] == ["policy"]


@pytest.mark.parametrize("layer", ["project", "local"])
def test_no_repository_says_who_answers_for_a_person(layer: Layer) -> None:
    said = {"classifier": {"enabled": True, "allow": ["everything"]}}
    assert not merged([file(layer, **said)]).settings.classifier.enabled
    assert merged([file("user", **said)]).settings.classifier.enabled
