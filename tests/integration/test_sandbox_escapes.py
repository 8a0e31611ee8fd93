"""Every way out does harm bare and none confined, by each mechanism; what happened is looked at from outside."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Mechanism, Probe
from support.sandbox_attacks import KILLS, NETWORK, PROTECTED, READS, WRITES, Attack
from support.sandbox_scene import Scene, scene

MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock")
ATTACKS = {
    f"{kind}: {attack.name}": attack
    for kind, attacks in (
        ("writing", WRITES),
        ("protected", PROTECTED),
        ("reading", READS),
        ("killing", KILLS),
        ("network", NETWORK),
    )
    for attack in attacks
}
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Probe:
    """A missing mechanism fails: what is not tried here would be tried nowhere."""
    found = probe(request.param)
    assert found.mechanism == request.param, found.why
    return found


@pytest.fixture(params=("below /tmp", "elsewhere"))
def place(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Below /tmp the sandbox has a folder of its own; elsewhere it shows what is there."""
    if request.param == "below /tmp":
        with scene(Path("/tmp")) as made:
            yield made
    else:
        with tempfile.TemporaryDirectory(prefix=".retinue-test-", dir=Path.home()) as base, scene(Path(base)) as made:
            yield made


def command(attack: Attack, place: Scene) -> str:
    words = {**place.words(), "handle": handle(place.secret / "key")}
    text = attack.command
    for name, value in words.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def handle(path: Path) -> str:
    """What `open_by_handle_at` finds a file by."""
    found = ctypes.create_string_buffer((128).to_bytes(4, "little"), 136)
    mount = ctypes.c_int()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.name_to_handle_at(-100, os.fsencode(path), found, ctypes.byref(mount), 0) == 0, os.strerror(
        ctypes.get_errno()
    )
    return found.raw[: 8 + int.from_bytes(found.raw[:4], "little")].hex()


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_way_out_does_harm_where_nothing_confines_it(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    with scene(Path("/tmp")) as place:
        outcome = await place.run(command(attack, place), None)
        assert attack.harm in place.harm(outcome) or (attack.needs_root and not ROOT), outcome


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_way_leads_out_of_a_sandbox(name: str, mechanism: Probe, place: Scene) -> None:
    outcome = await place.run(command(ATTACKS[name], place), mechanism)
    assert place.harm(outcome) == set(), outcome
