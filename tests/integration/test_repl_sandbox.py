"""Code in a real sandbox: it does by itself what a confined command may, and no more; its tools work all the same."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Mechanism, Probe
from support.repl_scene import Bench, repl
from support.sandbox_scene import PATH, Scene, scene

MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock")
TRY = textwrap.dedent(
    """
    import os, socket, subprocess
    def tried(act):
        try:
            return act() or "done"
        except OSError as error:
            return "no"
    """
)


@pytest.fixture(scope="module", params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Probe:
    found = probe(request.param)
    assert found.mechanism == request.param, found.why
    return found


@pytest.fixture
def place() -> Iterator[Scene]:
    with scene(Path("/tmp")) as made:
        yield made


def confined(place: Scene, found: Probe) -> KeeperShell:
    return KeeperShell(confinement=confinement(place.policy(), found))


def environment(place: Scene) -> dict[str, str]:
    return {"PATH": PATH, "HOME": str(place.scratch), "TMPDIR": str(place.scratch)}


async def value(at: Bench, expression: str) -> str:
    return (await at.run(f"{TRY}\n{expression}")).data.value or ""


async def test_variables_stay_and_tools_can_be_called_from_inside(mechanism: Probe, place: Scene) -> None:
    async with repl(place.root, shell=confined(place, mechanism), env=environment(place)) as at:
        await at.run("x = await Write('a.txt', 'one\\n')\ny = 20")
        assert await at.text("print((await Bash('cat a.txt')).strip())\ny + 1") == "one\n=> 21"
        assert [result.name for result in at.ended] == ["Write", "Bash"]


async def test_code_may_change_the_workspace_and_nothing_else(mechanism: Probe, place: Scene) -> None:
    async with repl(place.root, shell=confined(place, mechanism), env=environment(place)) as at:
        (at.work / "src").mkdir()
        assert await value(at, "tried(lambda: open('src/made', 'w').write('x'))") == "1"
        assert (at.work / "src" / "made").read_text() == "x"
        for target in (place.outside / "made", place.root / "made", at.work / ".claude" / "settings.json"):
            await value(at, f"tried(lambda: open({str(target)!r}, 'w'))")
            assert not target.exists()  # code may have a place of that name of its own
        hidden = place.secret if place.secret.is_file() else next(place.secret.rglob("*"))
        assert await value(at, f"tried(lambda: open({str(hidden)!r}).read())") == "'no'"


async def test_code_has_no_network(mechanism: Probe, place: Scene) -> None:
    address = place.server.getsockname()
    async with repl(place.root, shell=confined(place, mechanism), env=environment(place)) as at:
        assert await value(at, f"tried(lambda: socket.create_connection({address!r}, 2))") == "'no'"


async def test_code_that_will_not_stop_is_ended_inside_of_the_sandbox_too(mechanism: Probe, place: Scene) -> None:
    async with repl(place.root, shell=confined(place, mechanism), env=environment(place)) as at:
        at.session.grace_s = 0.6
        popen = "import subprocess\nsubprocess.Popen(['sleep', '1000'])"
        stubborn = f"{popen}\nimport signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        result = await at.run(stubborn, timeout=200)
        assert result.data.gone.startswith("the code did not stop")
        assert not at.session.is_alive
        assert await at.text("1") == "=> 1"


async def test_interrupts_reach_code_inside(mechanism: Probe, place: Scene) -> None:
    async with repl(place.root, shell=confined(place, mechanism), env=environment(place)) as at:
        result = await at.run("x = 3\nwhile True: pass", timeout=200)
        assert result.data.stopped
        assert not result.data.gone
        assert await at.text("x") == "=> 3"
