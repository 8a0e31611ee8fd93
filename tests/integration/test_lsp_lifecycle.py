"""How language servers are started, told what changed, called off and ended: a stand-in misbehaves on order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from retinue.tools.errors import ToolError
from retinue.tools.lsp.manager import LanguageServers
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.ports import LanguageAnswer, LanguageOperation, LanguageQuestion
from retinue.tools.shell.reap import TAG, reap
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.probe import probe

STAND_IN = Path(__file__).parents[1] / "support" / "language_server.py"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def until(true: Callable[[], bool]) -> None:
    """Other processes tell nobody when they have done something: look again and again."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class Scene:
    """A workspace with one file, and servers for it."""

    def __init__(self, folder: Path, *how: str, **settings: object) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.file = self.root / "a.x"
        self.file.write_text("one 😀 two\nthree\n")
        self.log = folder / "log"
        self.log.touch()
        self.clock = Clock()
        self.settings = LanguageServer.model_validate(
            {
                "command": sys.executable,
                "args": [str(STAND_IN), str(self.log), *how],
                "extensionToLanguage": {".x": "x"},
                "requestTimeout": 5_000,
                **settings,
            }
        )

    def servers(self, **more: Any) -> LanguageServers:
        env = {"PATH": os.environ["PATH"], "COLOUR": "blue"}
        return LanguageServers({"stand-in": self.settings}, root=self.root, env=env, clock=self.clock, **more)

    def logged(self, what: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if what in line]

    async def until_logged(self, what: str) -> str:
        await until(lambda: bool(self.logged(what)))
        return self.logged(what)[0]


async def ask(
    servers: LanguageServers, scene: Scene, operation: LanguageOperation = "hover", query: str = "", **place: int
) -> LanguageAnswer:
    return await servers.ask(LanguageQuestion(operation=operation, file=scene.file, query=query, **place))


async def known(servers: LanguageServers, scene: Scene, **place: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await ask(servers, scene, **place)).text)
    return found


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(pid: int) -> None:
    await until(lambda: not is_alive(pid))


@asynccontextmanager
async def running(scene: Scene, **more: Any) -> AsyncGenerator[LanguageServers]:
    async with scene.servers(**more) as servers:
        yield servers


# --- its start and its end -------------------------------------------------------------------------------------------


async def test_a_server_starts_at_the_first_question_and_is_one_for_all(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        assert scene.logged("start") == []
        answers = await asyncio.gather(*(known(servers, scene) for _ in range(5)))
        assert len({answer["pid"] for answer in answers}) == 1
        assert len(scene.logged("start")) == 1
        pid = answers[0]["pid"]
    assert len(scene.logged("shutdown")) == 1
    assert not psutil.pid_exists(pid)


async def test_it_gets_the_environment_of_the_tools_and_its_own_and_nothing_else(tmp_path: Path) -> None:
    scene = Scene(tmp_path, env={"MODE": "strict"})
    async with running(scene, tag="ada-1") as servers:
        env = (await known(servers, scene))["env"]
    assert {name: env[name] for name in ("COLOUR", "MODE", TAG)} == {"COLOUR": "blue", "MODE": "strict", TAG: "ada-1"}
    assert set(env) - {"COLOUR", "MODE", TAG, "PATH", "LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == set()


async def test_its_questions_are_answered_and_it_may_change_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path, settings={"a": {"b": 7}})
    async with running(scene) as servers:
        answered = (await known(servers, scene))["answered"]
    assert answered["c1"] == [7, {"a": {"b": 7}}]
    assert answered["c2"]["applied"] is False
    assert answered["c3"]["code"] == -32601


async def test_a_program_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    scene = Scene(tmp_path, command="no-such-server")
    async with running(scene) as servers:
        with pytest.raises(ToolError, match=r"no program no-such-server.*install"):
            await ask(servers, scene)


async def test_a_server_that_fails_at_its_start_is_quoted(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "fail")
    async with running(scene) as servers:
        with pytest.raises(ToolError, match=r"ended at its start: .*no licence for today"):
            await ask(servers, scene)
        assert servers.running == ()


async def test_a_server_that_does_not_come_up_is_ended(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "sleepy", startupTimeout=300, shutdownTimeout=100)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match=r"did not answer initialize within 0\.3 s"):
            await ask(servers, scene)
        await gone(int(scene.logged("start")[0].split()[0]))


async def test_a_question_called_off_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "sleepy", shutdownTimeout=100)
    async with running(scene) as servers:
        asking = asyncio.create_task(ask(servers, scene))
        pid = int((await scene.until_logged("start")).split()[0])
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await gone(pid)


async def test_an_idle_server_is_ended_and_started_again_when_asked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, idleTimeout=50)
    async with running(scene) as servers:
        first = (await known(servers, scene))["pid"]
        await scene.until_logged("shutdown")
        await gone(first)
        assert servers.running == ()
        assert (await known(servers, scene))["pid"] != first


async def test_it_runs_inside_the_sandbox_when_there_is_one(tmp_path: Path) -> None:
    class Wrapped:
        scratch = tmp_path
        guarded = False

        def wrap(self, argv: Sequence[str]) -> list[str]:
            return ["/usr/bin/env", "INSIDE=yes", *argv]

    scene = Scene(tmp_path)
    async with running(scene, confinement=Wrapped()) as servers:
        assert (await known(servers, scene))["env"]["INSIDE"] == "yes"


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
async def test_a_real_sandbox_holds_the_server_and_its_death_is_the_end_of_it(
    tmp_path: Path, mechanism: Literal["bubblewrap", "landlock"]
) -> None:
    scene = Scene(tmp_path)
    scene.log = scene.root / "log"
    scene.settings = scene.settings.model_copy(update={"args": (str(STAND_IN), str(scene.log))})
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    policy = SandboxPolicy(writable=(scene.root,), scratch=scratch, readable=(outside, STAND_IN.parents[2]))
    async with running(scene, confinement=confinement(policy, probe(mechanism))) as servers:
        inside = f"write {scene.root / 'made'}"
        assert (await ask(servers, scene, "workspaceSymbol", inside)).entries == ()
        assert (scene.root / "made").read_text() == "mine"
        with pytest.raises(ToolError, match="stand-in refused"):
            await ask(servers, scene, "workspaceSymbol", f"write {outside / 'made'}")
        assert list(outside.iterdir()) == []
        await ask(servers, scene, "workspaceSymbol", "child")
        ours = psutil.Process().children(recursive=True)
        assert any("sleep" in process.name() for process in ours)
    assert not any(is_alive(process.pid) for process in ours)


async def test_a_program_is_named_by_its_name_or_its_whole_path(tmp_path: Path) -> None:
    scene = Scene(tmp_path, command="./server")
    async with running(scene) as servers:
        with pytest.raises(ToolError, match="whole path"):
            await ask(servers, scene)


async def test_a_folder_of_the_workspace_can_be_served_and_none_outside(tmp_path: Path) -> None:
    scene = Scene(tmp_path, workspaceFolder="..")
    async with running(scene) as servers:
        with pytest.raises(ToolError, match="no folder of the workspace"):
            await ask(servers, scene)


# --- its death -------------------------------------------------------------------------------------------------------


async def test_a_server_that_crashes_once_is_started_again_and_the_question_repeated(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        assert (await ask(servers, scene, "workspaceSymbol", "once")).entries == ()
        assert len(scene.logged("start")) == 2


async def test_a_server_that_crashes_again_and_again_is_left_alone_for_a_while(tmp_path: Path) -> None:
    scene = Scene(tmp_path, maxRestarts=3)
    async with running(scene) as servers:
        for _ in range(2):
            with pytest.raises(ToolError, match="ended: its output ended: something broke"):
                await ask(servers, scene, "workspaceSymbol", "crash")
        for _ in range(2):
            with pytest.raises(ToolError, match=r"ended 4 times .* not started again"):
                await ask(servers, scene)
        assert len(scene.logged("start")) == 4
        scene.clock.now += 600
        await known(servers, scene)


async def test_a_server_that_cannot_start_is_not_tried_for_ever(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "fail", maxRestarts=1)
    async with running(scene) as servers:
        for says in ("no licence", "no licence", "not started again"):
            with pytest.raises(ToolError, match=says):
                await ask(servers, scene)
    assert len(scene.logged("start")) == 2


async def test_without_restarts_one_crash_is_enough(tmp_path: Path) -> None:
    scene = Scene(tmp_path, restartOnCrash=False)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match="something broke"):
            await ask(servers, scene, "workspaceSymbol", "crash")
        with pytest.raises(ToolError, match="not started again"):
            await ask(servers, scene)


async def test_what_is_no_protocol_ends_the_server(tmp_path: Path) -> None:
    scene = Scene(tmp_path, restartOnCrash=False)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match="a header without a length"):
            await ask(servers, scene, "workspaceSymbol", "garbage")


async def test_all_that_a_server_started_ends_with_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        await ask(servers, scene, "workspaceSymbol", "child")
        child = int(scene.logged("child")[0].split()[-1])
        assert psutil.pid_exists(child)
    assert not psutil.pid_exists(child)


AGENT = """
import asyncio, os, sys
from pathlib import Path
from retinue.tools.lsp.manager import LanguageServers
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.ports import LanguageQuestion

async def main():
    stand_in, log, root = sys.argv[1:]
    server = LanguageServer.model_validate(
        {"command": sys.executable, "args": [stand_in, log], "extensionToLanguage": {".x": "x"}}
    )
    servers = LanguageServers({"s": server}, root=Path(root), env={"PATH": os.environ["PATH"]}, tag="lonely-agent")
    await servers.ask(LanguageQuestion(operation="workspaceSymbol", file=Path(root) / "a.x", query="child"))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("killed", ["the agent", "the agent and the guard"])
async def test_servers_die_with_an_agent_that_is_killed(tmp_path: Path, killed: str) -> None:
    """Of what a killed guard leaves, the server is killed by the kernel, and the rest is found by its mark."""
    scene = Scene(tmp_path)
    argv = [sys.executable, "-c", AGENT, str(STAND_IN), str(scene.log), str(scene.root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"ready\n"
        server, child = (int(scene.logged(what)[0].split()[place]) for what, place in (("start", 0), ("child", -1)))
        guard = psutil.Process(server).ppid()
        if killed != "the agent":
            os.kill(guard, signal.SIGKILL)
        agent.kill()
    await gone(server)
    if killed != "the agent":
        await asyncio.to_thread(reap, "lonely-agent")
    await gone(child)
    await gone(guard)


# --- questions -------------------------------------------------------------------------------------------------------


async def test_a_question_that_is_called_off_is_called_off_at_the_server(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        await known(servers, scene)
        asking = asyncio.create_task(ask(servers, scene, "workspaceSymbol", "hang"))
        await scene.until_logged("hang")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await scene.until_logged("cancelled")
        await known(servers, scene)


async def test_what_changed_is_told_in_full_when_the_question_is_called_off_meanwhile(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        await known(servers, scene)
        for rounds in range(8):
            scene.file.write_text(f"text {rounds}\n")
            asking = asyncio.create_task(known(servers, scene))
            for _ in range(rounds):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            assert (await known(servers, scene))["open"] == {"a.x": f"text {rounds}\n"}


async def test_a_file_that_is_gone_is_told_and_the_server_hears_of_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    other = scene.root / "b.x"
    other.write_text("b")
    async with running(scene) as servers:
        await known(servers, scene)
        scene.file.unlink()
        with pytest.raises(ToolError, match="does not exist"):
            await known(servers, scene)
        scene.file = other
        seen = await known(servers, scene)
        assert seen["open"] == {"b.x": "b"}
        assert seen["watched"] == [["a.x", 3]]


async def test_a_question_without_an_answer_ends_at_its_deadline(tmp_path: Path) -> None:
    scene = Scene(tmp_path, requestTimeout=300)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match=r"did not answer workspace/symbol within 0\.3 s"):
            await ask(servers, scene, "workspaceSymbol", "hang")
        await scene.until_logged("cancelled")


@pytest.mark.parametrize(
    ("query", "says"), [("refuse", "stand-in refused: it is beyond me"), ("nonsense", "does not fit the protocol")]
)
async def test_what_the_server_refuses_or_mangles_is_told(tmp_path: Path, query: str, says: str) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match=says):
            await ask(servers, scene, "workspaceSymbol", query)


async def test_a_question_is_repeated_when_the_text_moved_under_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        assert (await ask(servers, scene, "workspaceSymbol", "modified")).entries == ()


async def test_what_a_server_cannot_do_and_whom_it_is_not_for_is_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        with pytest.raises(ToolError, match="has no incomingCalls"):
            await ask(servers, scene, "incomingCalls")
        scene.file = scene.root / "b.py"
        with pytest.raises(ToolError, match=r"configured for \.py; there are servers for \.x"):
            await ask(servers, scene)


async def test_columns_are_sent_and_read_in_the_servers_units(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        assert (await known(servers, scene, line=1, character=7))["position"] == {"line": 0, "character": 7}
        with pytest.raises(ToolError, match="only 3 lines"):
            await ask(servers, scene, line=9)
        found = await ask(servers, scene, "goToDefinition")
        assert [(entry.file, entry.line, entry.character) for entry in found.entries] == [
            (str(scene.file), 1, 5),
            ("git:/x", 1, 6),
        ]


# --- what changed on disk --------------------------------------------------------------------------------------------


async def test_the_server_sees_files_as_they_are_on_disk(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    other = scene.root / "b.x"
    async with running(scene) as servers:
        assert (await known(servers, scene))["open"] == {"a.x": "one 😀 two\nthree\n"}
        scene.file.write_text("new text\n")
        other.write_text("created\n")
        (scene.root / "settings.json").write_text("{}")
        seen = await known(servers, scene)
        assert seen["open"] == {"a.x": "new text\n", "b.x": "created\n"}
        assert sorted(seen["watched"]) == [["a.x", 2], ["b.x", 1], ["settings.json", 1]]
        other.unlink()
        seen = await known(servers, scene)
        assert seen["open"] == {"a.x": "new text\n"}
        assert ["b.x", 3] in seen["watched"]


async def test_published_diagnostics_are_those_of_the_newest_text(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    async with running(scene) as servers:
        for text in ("first", "second"):
            scene.file.write_text(text)
            found = await ask(servers, scene, "diagnostics")
            assert [(entry.kind, entry.name) for entry in found.entries] == [("warning", f"text {text!r}")]
        again = await ask(servers, scene, "diagnostics")
        assert again.entries == found.entries
