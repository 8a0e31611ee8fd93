"""Commands at random: whatever the analysis calls read-only is run by the real shell, in a box, and watched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from retinue.tools.shell.analysis.model import Shell
from retinue.tools.shell.analysis.table import EntryData, builtin_table, extended
from support.shell_fuzz.campaign import Campaign
from support.shell_fuzz.found import COUNTEREXAMPLES
from support.shell_fuzz.grammar import Grammar
from support.shell_fuzz.judge import faults
from support.shell_fuzz.scene import Scene, fresh_scene

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not all(map(shutil.which, ("strace", "bwrap", "zsh"))),
        reason="strace, bubblewrap and zsh are needed to watch two shells",
    ),
]

SEED = 40
BUDGET_S = float(os.environ.get("RETINUE_SHELL_FUZZ_CI_S", "10"))
SHELLS: tuple[Shell, ...] = ("bash", "zsh")
PLANTED = {
    "touch": ("paths", "write"),
    "mkdir": ("paths", "change"),
    "rm": ("paths", "change"),
    "env": ("anything", "exec"),
    "od": ("anything", "read"),
    "getent": ("anything", "network"),
}
"""A program that the table wrongly vouches for, with the rule for its arguments, and what must be noticed of it."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with fresh_scene() as made:
        yield made


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_called_read_only_only_reads(scene: Scene, shell: Shell) -> None:
    campaign = Campaign(scene, Grammar(SEED, builtin_table()))
    campaign.fuzz(BUDGET_S, shell)
    assert not campaign.findings, campaign.report()
    assert campaign.run >= 60
    assert campaign.run > campaign.generated / 10, "a fuzz that approves nothing tests nothing"
    assert len(campaign.programs) >= 30


def test_words_are_those_that_bash_hands_on(scene: Scene) -> None:
    campaign = Campaign(scene, Grammar(SEED, builtin_table()))
    campaign.compare_words(BUDGET_S / 2)
    assert not campaign.findings, campaign.report()
    assert campaign.compared >= 60


@pytest.mark.parametrize("command", COUNTEREXAMPLES)
def test_what_was_found_once_is_asked_about(scene: Scene, command: str) -> None:
    campaign = Campaign(scene, Grammar(SEED, builtin_table()))
    assert campaign.judge(command).outcome == "ask"


@pytest.mark.parametrize("program", PLANTED)
def test_a_program_that_is_wrongly_vouched_for_is_noticed(program: str) -> None:
    arguments, kind = PLANTED[program]
    table = extended({program: EntryData(why="planted", args=arguments)})
    calls = {
        "touch": "touch new.txt",
        "mkdir": "mkdir new",
        "rm": "rm a.txt",
        "env": "env ls src",
        "od": "od ../other/secret.txt",
        "getent": "getent hosts example.org",
    }
    with fresh_scene() as scene:
        campaign = Campaign(scene, Grammar(SEED, table, [calls[program]]), table)
        verdict = campaign.judge(calls[program])
        assert verdict.outcome == "read-only"
        (traced,) = scene.trace([calls[program]])
        assert kind in {fault.kind for fault in faults(verdict, traced, scene)}


@pytest.mark.parametrize(
    ("name", "forgotten", "call", "kind"),
    [
        ("xxd", {"ordered": False}, "xxd a.txt -p", "write"),
        ("xxd", {"bundles": True}, "xxd -po a.txt x", "write"),
        ("strings", {"responses": False}, "strings @opts", "read"),
        ("git config", {"ordered": False}, "git config user.name --get", "write"),
    ],
)
def test_a_habit_of_a_program_that_the_table_forgets_is_noticed(
    name: str, forgotten: dict[str, bool], call: str, kind: str
) -> None:
    table = {**builtin_table(), name: builtin_table()[name]._replace(**forgotten)}
    with fresh_scene() as scene:
        campaign = Campaign(scene, Grammar(SEED, table), table)
        verdict = campaign.judge(call)
        assert verdict.outcome == "read-only"
        (traced,) = scene.trace([call])
        assert kind in {fault.kind for fault in faults(verdict, traced, scene)}
        assert Campaign(scene, Grammar(SEED, builtin_table())).judge(call).outcome == "ask"


def test_the_fuzz_finds_a_planted_fault_by_itself_and_makes_it_small() -> None:
    table = {name: builtin_table()[name] for name in ("ls", "cat", "wc", "echo")}
    table |= {"touch": extended({"touch": EntryData(why="planted", args="paths")})["touch"]}
    with fresh_scene() as scene:
        campaign = Campaign(scene, Grammar(SEED, table), table, most=1, made_small=1)
        campaign.fuzz(20)
        assert any(finding.smallest.startswith("touch") for finding in campaign.findings), campaign.report()
        assert min(len(finding.smallest) for finding in campaign.findings) <= len("touch abc")
