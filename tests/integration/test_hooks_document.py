"""The page about hooks: its example does what the page says, and it leaves no event and no field out."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from retinue.tools.hooks.answers import Answer
from retinue.tools.hooks.command import CommandRunner
from retinue.tools.hooks.config import parse_hooks
from retinue.tools.hooks.engine import Hooks, Means
from retinue.tools.hooks.events import EVENTS
from retinue.tools.hooks.merge import Verdict
from retinue.tools.hooks.payloads import PAYLOADS, Payload, PreToolUse, Situation, Stop
from retinue.tools.shell.runner import KeeperShell

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text()
BLOCKS = dict(re.findall(r"```(json|python)\n(.*?)```", PAGE, re.DOTALL)[:2])
CHECK = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    script = tmp_path / ".claude" / "hooks" / "no_push.py"
    script.parent.mkdir(parents=True)
    script.write_text(BLOCKS["python"])
    env = {"PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(tmp_path)}
    found = parse_hooks(json.loads(BLOCKS["json"])["hooks"], ".claude/settings.json")
    assert (len(found.hooks), found.remarks) == (2, ())
    means = Means(CommandRunner(KeeperShell(), env, tmp_path / "out"), env)
    return Hooks(found.hooks, means, lambda: Situation(cwd=str(tmp_path)))


async def calls(hooks: Hooks, command: str) -> Verdict:
    return await hooks.fire(PreToolUse(tool_name="Bash", tool_input={"command": command}, tool_use_id="t"))


async def test_the_example_lets_only_people_push(hooks: Hooks):
    denied = (await calls(hooks, "git push")).decision
    assert denied is not None
    assert (denied.behavior, denied.reason) == ("deny", "Only people push.")
    assert (await calls(hooks, "git status")).decision is None


async def test_the_example_asks_for_changes_before_the_end(hooks: Hooks, tmp_path: Path):
    end = Stop(stop_hook_active=False, last_assistant_message="")
    assert (await hooks.fire(end)).feedback == "Write CHANGES.md first."
    (tmp_path / "CHANGES.md").touch()
    assert (await hooks.fire(end)).feedback == ""


def test_the_function_of_the_page_keeps_vendor_as_it_is():
    names: dict[str, object] = {}
    exec(compile(CHECK, "docs/hooks.md", "exec"), names)
    check = names["check"]
    assert callable(check)
    call = PreToolUse(tool_name="Write", tool_input={"file_path": "/w/vendor/a.c"}, tool_use_id="t")
    assert check(call) == Answer(decision="deny", reason="vendor/ is generated; change its source.")
    assert check(Stop(stop_hook_active=False, last_assistant_message="")) is None


@pytest.mark.parametrize("event", EVENTS)
def test_the_page_names_every_event(event: str):
    assert event in PAGE


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_page_names_every_field(payload: type[Payload]):
    missing = [name for name in payload.model_fields if f"`{name}`" not in PAGE]
    assert missing == []
