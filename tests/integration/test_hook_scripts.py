"""Hooks as people write them: real scripts in Bash and Python, and functions, run by what runs them in an agent."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from retinue.tools.hooks.answers import Answer
from retinue.tools.hooks.command import CommandRunner
from retinue.tools.hooks.config import parse_hooks
from retinue.tools.hooks.engine import Hooks, Means
from retinue.tools.hooks.events import Event
from retinue.tools.hooks.merge import Verdict
from retinue.tools.hooks.payloads import (
    Notification,
    Payload,
    PreCompact,
    PreToolUse,
    SessionEnd,
    SessionStart,
    Situation,
    Stop,
    UserPromptSubmit,
    WorktreeCreate,
    WorktreeRemove,
)
from retinue.tools.hooks.runs import HookRun
from retinue.tools.shell.runner import KeeperShell

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
END = Stop(stop_hook_active=False, last_assistant_message="done")
PROMPT = UserPromptSubmit(prompt="do it")


class Bench:
    """Hooks of one agent in a folder, and what is recorded of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[tuple[Event, tuple[HookRun, ...]]] = []
        self.env = {"PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(folder), "HERE": str(folder)}

    def script(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o700)
        return str(path)

    def hooks(self, event: Event, *handlers: dict[str, JsonValue], matcher: str = "") -> Hooks:
        written: JsonValue = [{"matcher": matcher, "hooks": list(handlers)}]
        found = parse_hooks({event: written}, "settings.json")
        assert not found.remarks
        runner = CommandRunner(KeeperShell(), self.env, self.folder / "out")
        means = Means(runner, self.env)
        return Hooks(found.hooks, means, lambda: Situation("s", "/ledger", str(self.folder)), self._record)

    async def _record(self, event: Event, runs: tuple[HookRun, ...], verdict: Verdict) -> None:
        self.ran.append((event, runs))

    async def fire(self, payload: Payload, *commands: str, **keys: JsonValue) -> Verdict:
        handlers: list[dict[str, JsonValue]] = [{"type": "command", "command": each, **keys} for each in commands]
        return await self.hooks(payload.event, *handlers).fire(payload)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_bash_script_blocks_by_its_exit_code(bench: Bench):
    script = bench.script("guard.sh", '#!/bin/bash\nread -r line\necho "no: ${#line}" >&2\nexit 2\n')
    verdict = await bench.fire(CALL, script)
    assert verdict.decision is not None
    assert verdict.decision.behavior == "deny"
    assert verdict.decision.reason == f"no: {len(CALL.placed(Situation('s', '/ledger', str(bench.folder))).as_json())}"
    assert [(run.outcome, run.exit) for _, runs in bench.ran for run in runs] == [("blocked", 2)]


async def test_a_python_script_reads_the_event_and_answers_in_json(bench: Bench):
    script = bench.script(
        "guard.py",
        f"#!{sys.executable}\nimport json, sys\nevent = json.load(sys.stdin)\n"
        "allowed = event['tool_input']['command'] == 'ls' and event['hook_event_name'] == 'PreToolUse'\n"
        "print(json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', 'permissionDecision': "
        "'allow' if allowed else 'deny', 'updatedInput': {'command': 'ls -l'}, "
        "'additionalContext': event['session_id'] + event['cwd']}}))\n",
    )
    verdict = await bench.fire(CALL, script)
    assert verdict.decision is not None
    assert verdict.decision.behavior == "allow"
    assert verdict.updated_input == {"command": "ls -l"}
    assert verdict.contexts == (f"s{bench.folder}",)


@pytest.mark.parametrize(
    ("payload", "command", "told"),
    [
        (SessionStart(source="startup"), "echo on main", ("on main",)),
        (PROMPT, "echo remember", ("remember",)),
        (END, "echo chatter", ()),
        (PreCompact(trigger="auto"), "cat >/dev/null", ()),
        (Notification(message="m", notification_type="idle_prompt"), "true", ()),
        (WorktreeRemove(worktree_path="/t"), "true", ()),
        (SessionEnd(reason="other"), "true", ()),
    ],
)
async def test_plain_output(bench: Bench, payload: Payload, command: str, told: tuple[str, ...]):
    verdict = await bench.fire(payload, command)
    assert (verdict.contexts, verdict.blocked, verdict.problems) == (told, (), ())


async def test_a_worktree_hook_names_its_path(bench: Bench):
    command = 'python3 -c \'import json,sys; print("/trees/" + json.load(sys.stdin)["name"])\''
    assert (await bench.fire(WorktreeCreate(name="x"), command)).worktree == "/trees/x"


async def test_a_hook_has_its_project_and_the_agents_folder(bench: Bench):
    verdict = await bench.fire(PROMPT, 'echo "$CLAUDE_PROJECT_DIR $PWD ${RETINUE_SECRET-none}"')
    assert verdict.contexts == (f"{bench.folder} {bench.folder} none",)


async def test_arguments_need_no_shell(bench: Bench):
    hooks = bench.hooks("UserPromptSubmit", {"type": "command", "command": "printf", "args": ["%s|", "a b", "$HOME"]})
    assert (await hooks.fire(PROMPT)).contexts == ("a b|$HOME|",)


async def test_a_large_event_reaches_the_hook_whole(bench: Bench):
    text = "é" * 3_000_000
    verdict = await bench.fire(UserPromptSubmit(prompt=text), "wc -c")
    assert int(verdict.contexts[0]) > 6_000_000


async def test_the_same_hook_runs_once_and_all_are_heard(bench: Bench):
    count = 'echo x >>"$HERE/count"'
    verdict = await bench.fire(END, count, count, "echo a >&2; exit 2", "echo b >&2; exit 2")
    assert (bench.folder / "count").read_text() == "x\n"
    assert verdict.feedback == "a\nb"


async def test_all_hooks_run_side_by_side(bench: Bench):
    """Each waits for the other: one after the other they would never end."""
    pipes = [str(bench.folder / name) for name in "ab"]
    for pipe in pipes:
        os.mkfifo(pipe)
    first = f"echo 1 >{pipes[0]}; read -r x <{pipes[1]}; echo first $x"
    second = f"read -r x <{pipes[0]}; echo 2 >{pipes[1]}; echo second $x"
    verdict = await bench.fire(PROMPT, first, second)
    assert verdict.contexts == ("first 2", "second 1")


async def test_a_hook_that_hangs_is_ended_at_its_deadline_with_all_it_started(bench: Bench):
    verdict = await bench.fire(CALL, f"sleep 1000 & echo $! >{bench.folder}/pid; trap '' TERM; sleep 1000", timeout=0.4)
    assert verdict.decision is None
    assert verdict.problems[0].endswith("it did not end within 0.4 s")
    assert bench.ran[0][1][0].outcome == "timeout"
    assert not psutil.pid_exists(int((bench.folder / "pid").read_text()))


async def test_who_is_called_off_leaves_no_process_and_no_file(bench: Bench):
    os.mkfifo(bench.folder / "begun")
    command = f"sleep 1000 & echo $! >{bench.folder}/pid; echo >{bench.folder}/begun; wait"
    firing = asyncio.create_task(bench.fire(CALL, command))
    await asyncio.to_thread((bench.folder / "begun").read_text)
    firing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await firing
    assert not psutil.pid_exists(int((bench.folder / "pid").read_text()))
    assert list((bench.folder / "out").iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "head -c 100000 /dev/urandom",
        "printf '\\xff\\xfe{\\x00'",
        "printf '{\\x1b[31m\"continue\": fal'",
        "exit 1",
        "no-such-program",
        "kill -9 $$",
        "printf '{\"decision\": 5}'",
        "yes x",
        "yes x >&2",
    ],
)
async def test_whatever_a_hook_prints_it_stops_no_call(bench: Bench, command: str):
    verdict = await bench.fire(CALL, command, timeout=20)
    assert (verdict.decision, verdict.blocked, verdict.halt) == (None, (), None)


async def test_a_hook_nobody_waits_for_is_heard_later(bench: Bench):
    os.mkfifo(bench.folder / "go")
    done = asyncio.Event()
    output = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "late word"}})
    hooks = bench.hooks(
        "PreToolUse", {"type": "command", "command": f"cat {bench.folder}/go; echo '{output}'", "async": True}
    )
    record = hooks.on_ran

    async def told(event: Event, runs: tuple[HookRun, ...], verdict: Verdict) -> None:
        await record(event, runs, verdict)
        if runs[0].outcome != "started":
            done.set()

    hooks.on_ran = told
    verdict = await hooks.fire(CALL)
    assert (verdict.decision, verdict.contexts, hooks.take_late()) == (None, (), ())
    await asyncio.to_thread((bench.folder / "go").write_text, "")
    await done.wait()
    assert hooks.take_late() == ("late word",)
    assert hooks.take_late() == ()


async def test_closing_ends_hooks_that_nobody_waits_for(bench: Bench):
    os.mkfifo(bench.folder / "begun")
    command = f"echo $$ >{bench.folder}/pid; echo >{bench.folder}/begun; sleep 1000"
    hooks = bench.hooks("PreToolUse", {"type": "command", "command": command, "async": True})
    await hooks.fire(CALL)
    await asyncio.to_thread((bench.folder / "begun").read_text)
    await hooks.close()
    assert not psutil.pid_exists(int((bench.folder / "pid").read_text()))


@pytest.mark.parametrize(("timeout", "longest"), [(None, 1.5), (0.2, 0.2)])
async def test_the_end_of_a_session_waits_for_no_slow_hook(bench: Bench, timeout: float | None, longest: float):
    begun = time.monotonic()
    keys: dict[str, JsonValue] = {} if timeout is None else {"timeout": timeout}
    verdict = await bench.fire(SessionEnd(reason="other"), "sleep 1000", **keys)
    assert verdict.problems
    assert longest <= time.monotonic() - begun < longest + 20


def module(monkeypatch: pytest.MonkeyPatch, **functions: Callable[[Payload], object]) -> None:
    made = types.ModuleType("my_hooks")
    for name, function in functions.items():
        setattr(made, name, function)
    monkeypatch.setitem(sys.modules, "my_hooks", made)


async def python(bench: Bench, name: str, **keys: JsonValue) -> Verdict:
    return await bench.hooks("PreToolUse", {"type": "python", "call": f"my_hooks:{name}", **keys}).fire(CALL)


async def test_a_function_answers(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    def denies(payload: Payload) -> Answer:
        assert isinstance(payload, PreToolUse)
        return Answer(decision="deny", reason=f"no {payload.tool_name}")

    async def silent(payload: Payload) -> None:
        await asyncio.sleep(0)

    module(monkeypatch, plain=denies, silent=silent)
    verdict = await python(bench, "plain")
    assert verdict.decision is not None
    assert verdict.decision.reason == "no Bash"
    assert (await python(bench, "silent")).decision is None


async def test_a_function_that_fails_or_hangs_stops_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    import threading

    release = threading.Event()

    def fails(payload: Payload) -> Answer:
        raise ValueError("secret words")

    def hangs(payload: Payload) -> Answer | None:
        release.wait()
        return None

    module(monkeypatch, fails=fails, hangs=hangs, odd=lambda _: "yes")
    assert (await python(bench, "fails")).problems == ("PreToolUse hook my_hooks:fails (user): it failed: ValueError",)
    assert (await python(bench, "hangs", timeout=0.1)).problems[0].endswith("it did not end within 0.1 s")
    assert (await python(bench, "odd")).problems[0].endswith("it answered with str, not Answer")
    assert "cannot be loaded" in (await python(bench, "absent")).problems[0]
    release.set()
