"""The section `hooks` as files have it: what is read, what is refused, and which hooks an event concerns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.tools.base import NameSubject, PathSubject, Subject, ToolContext
from retinue.tools.errors import SpecError
from retinue.tools.hooks.config import CommandHook, HttpHook, PythonHook, for_definition, parse_hooks
from retinue.tools.hooks.events import EVENTS, TOOL_EVENTS, Event
from retinue.tools.hooks.match import Call, concerns, fits_condition
from retinue.tools.hooks.payloads import PAYLOADS, PreToolUse, Situation, SubagentStop
from retinue.tools.shell.bash.tool import Bash
from support.calls import Silent, Words, context

RUN: dict[str, JsonValue] = {"type": "command", "command": "/bin/check --token=abc x"}


def one(event: str, handler: JsonValue, **group: JsonValue) -> dict[str, JsonValue]:
    return {event: [{**group, "hooks": [handler]}]}


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_takes_a_command(event: Event):
    (hook,) = parse_hooks(one(event, RUN), "f.json").hooks
    assert (hook.event, hook.matcher, hook.source) == (event, "", "user")


def test_a_hook_is_named_without_its_arguments():
    (hook,) = parse_hooks(one("Stop", RUN), "f.json", "project").hooks
    assert hook.name == "Stop hook check (project)"
    secret: JsonValue = {"type": "command", "command": "TOKEN=abc curl -H 'X: y'"}
    assert parse_hooks(one("Stop", secret), "f").hooks[0].name == "Stop hook curl (user)"


def test_all_keys_of_handlers_are_read():
    command: JsonValue = {
        "type": "command",
        "command": "a",
        "args": ["b c"],
        "async": True,
        "asyncRewake": True,
        "timeout": 5,
        "statusMessage": "checking",
        "once": True,
        "if": "Bash(git *)",
        "unknown": 1,
    }
    (hook,) = parse_hooks(one("PreToolUse", command, matcher="Bash"), "f").hooks
    handler = hook.handler
    assert isinstance(handler, CommandHook)
    assert (handler.args, handler.runs_beside, handler.async_rewake) == (("b c",), True, True)
    assert (hook.deadline_s, handler.status_message, handler.once) == (5, "checking", True)
    http: JsonValue = {"type": "http", "url": "http://u:p@h/x", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]}
    (hook,) = parse_hooks(one("Stop", http), "f").hooks
    assert isinstance(hook.handler, HttpHook)
    assert hook.name == "Stop hook h (user)"


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ({"Stop": {}}, 'f: hooks.Stop: write a list of {"matcher": …, "hooks": […]}'),
        ({"Stop": [{"matcher": "x"}]}, 'f: hooks.Stop[0]: write {"matcher": …, "hooks": […]}'),
        ({"Stop": [{"hooks": ["x"]}]}, 'f: hooks.Stop[0].hooks[0]: write {"type": "command", "command": …}'),
        (one("Stop", RUN, matcher=5), "f: hooks.Stop[0].matcher: write a text"),
        (one("Stop", RUN, matcher="(("), "f: hooks.Stop[0].matcher: '((' is no regular expression"),
        (one("Stop", {"type": "command"}), "f: hooks.Stop[0].hooks[0].command: Field required"),
        (one("Stop", {"type": "shout"}), "f: hooks.Stop[0].hooks[0]: Input tag 'shout'"),
        (one("Stop", {**RUN, "timeout": 0}), "f: hooks.Stop[0].hooks[0].timeout: Input should be greater than 0"),
        (one("PreToolUse", {**RUN, "if": "?("}), "f: hooks.PreToolUse[0].hooks[0].if: "),
    ],
)
def test_what_is_no_hook_is_refused_with_its_place(events: dict[str, JsonValue], error: str):
    with pytest.raises(SpecError) as caught:
        parse_hooks(events, "f")
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("events", "remark"),
    [
        (one("PreToolsUse", RUN), "there is no such event here, its hooks are never run; did you mean PreToolUse?"),
        (one("ConfigChange", RUN), "there is no such event here, its hooks are never run"),
        (one("Stop", {"type": "agent", "prompt": "x"}), "hooks of the type agent are not supported"),
        (one("Stop", {"type": "mcp_tool", "server": "x"}), "hooks of the type mcp_tool are not supported"),
        (one("SessionEnd", {"type": "prompt", "prompt": "x"}), "a hook of the type prompt is not asked at SessionEnd"),
        (one("SessionStart", {"type": "http", "url": "http://x"}), "only commands and Python are run at SessionStart"),
        (one("Stop", {**RUN, "shell": "powershell"}), "commands for powershell are not supported"),
        (one("Stop", {**RUN, "if": "Bash(x)"}), "`if` is about calls of tools: at Stop such a hook is never run"),
    ],
)
def test_what_is_not_run_here_is_named_and_the_rest_is_read(events: dict[str, JsonValue], remark: str):
    found = parse_hooks({**events, **one("TaskCreated", RUN)}, "f")
    assert [hook.event for hook in found.hooks] == ["TaskCreated"]
    assert len(found.remarks) == 1
    assert remark in found.remarks[0]
    assert found.remarks[0].startswith("f: hooks.")


def test_python_counts_in_the_users_own_settings_only():
    hook: JsonValue = {"type": "python", "call": "mine:check"}
    (found,) = parse_hooks(one("Stop", hook), "f", "user").hooks
    assert isinstance(found.handler, PythonHook)
    project = parse_hooks(one("Stop", hook), "f", "project")
    assert (project.hooks, len(project.remarks)) == ((), 1)


def test_a_definitions_stop_is_the_sub_agents():
    found = for_definition(parse_hooks({**one("Stop", RUN), **one("PreToolUse", RUN)}, "f", "definition"))
    assert [hook.event for hook in found.hooks] == ["SubagentStop", "PreToolUse"]


@pytest.mark.parametrize(
    ("matcher", "subject", "fits"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("bash", "Bash", False),
        ("mcp__memory", "mcp__memory__add", False),
        ("mcp__memory__.*", "mcp__memory__add", True),
        ("Edit.*", "NotebookEdit", True),
        ("^Edit", "NotebookEdit", False),
        ("Notebook.*|Bash", "Bash", True),
    ],
)
def test_matchers_are_lists_of_names_or_regular_expressions(matcher: str, subject: str, fits: bool):
    assert concerns(matcher, (subject,)) is fits


def test_an_event_about_nothing_concerns_every_hook():
    assert concerns("whatever", ())


class Filed(Silent):
    """A tool about a file, with an old name."""

    name = "Edit"
    aliases = ("OldEdit",)

    def subject(self, args: Words, ctx: ToolContext) -> Subject:
        return PathSubject(Path(args.text), write=True)


class Named(Silent):
    name = "Agent"

    def subject(self, args: Words, ctx: ToolContext) -> Subject:
        return NameSubject(args.text)


@pytest.mark.parametrize(
    ("condition", "command", "fits"),
    [
        ("Bash(git *)", "git push", True),
        ("Bash(git *)", "ls && git push", True),
        ("Bash(git *)", "FOO=1 git push", True),
        ("Bash(git *)", "ls", False),
        ("Bash", "ls", True),
        ("Bash(rm *)", "echo $(rm -rf /)", True),
        ("Bash(git *)", "echo 'unclosed", True),
        ("Edit(*.py)", "ls", False),
    ],
)
def test_a_condition_fits_commands_by_their_parts(condition: str, command: str, fits: bool):
    call = Call(Bash(), Bash.Input.model_validate({"command": command}), context())
    assert fits_condition(condition, call) is fits


@pytest.mark.parametrize(
    ("condition", "path", "fits"),
    [("Edit(*.py)", "/w/a.py", True), ("Edit(*.py)", "/w/a.txt", False), ("Read(*.py)", "/w/a.py", False)],
)
def test_a_condition_fits_paths(condition: str, path: str, fits: bool):
    assert fits_condition(condition, Call(Filed(), Words(text=path), context())) is fits


@pytest.mark.parametrize(("name", "fits"), [("explore", True), ("coder", False)])
def test_a_condition_fits_names(name: str, fits: bool):
    assert fits_condition("Agent(explore)", Call(Named(), Words(text=name), context())) is fits


def test_a_call_is_known_by_its_old_names_too():
    assert concerns("OldEdit", Call(Filed(), Words(), context()).names)


def test_there_is_a_payload_for_every_event():
    assert sorted(payload.event for payload in PAYLOADS) == sorted(EVENTS)
    with_tools = {payload.event for payload in PAYLOADS if "tool_name" in payload.model_fields}
    assert with_tools == TOOL_EVENTS


def test_a_payload_is_written_with_its_event_and_what_all_have():
    payload = PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1", cwd="/elsewhere")
    placed = payload.placed(Situation(session_id="s", transcript_path="/l", cwd="/w", permission_mode="plan"))
    assert json.loads(placed.as_json()) == {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "transcript_path": "/l",
        "cwd": "/elsewhere",
        "permission_mode": "plan",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "t1",
    }


def test_a_sub_agent_has_its_own_fields():
    fields = {"stop_hook_active": True, "last_assistant_message": "done", "agent_transcript_path": "/l"}
    placed = SubagentStop.model_validate(fields).placed(Situation(agent_id="a~1", agent_type="coder"))
    written = json.loads(placed.as_json())
    assert (written["agent_id"], written["agent_type"], written["stop_hook_active"]) == ("a~1", "coder", True)
    assert placed.subjects == ("coder",)
