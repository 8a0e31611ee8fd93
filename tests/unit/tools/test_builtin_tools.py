"""The tools that come with the product, as a whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from retinue.tools.base import READS, AnyTool, Tool
from retinue.tools.registry.builtin import builtin_tools

FIELDS = {
    "Read": ({"file_path"}, {"offset", "limit", "pages"}),
    "Edit": ({"file_path", "old_string", "new_string"}, {"replace_all"}),
    "Write": ({"file_path", "content"}, set()),
    "NotebookEdit": ({"notebook_path", "new_source"}, {"cell_id", "cell_type", "edit_mode"}),
    "Glob": ({"pattern"}, {"path"}),
    "Grep": (
        {"pattern"},
        {"path", "glob", "type", "output_mode", "-i", "-n", "-o", "-A", "-B", "-C", "context", "head_limit", "offset"}
        | {"multiline"},
    ),
    "Bash": ({"command"}, {"timeout", "description", "run_in_background", "dangerouslyDisableSandbox"}),
    "TaskOutput": ({"task_id"}, {"block", "timeout"}),
    "TaskStop": (set(), {"task_id", "shell_id"}),
    "Agent": ({"description", "prompt"}, {"subagent_type", "model"}),
    "SendMessage": ({"to", "message"}, {"summary"}),
    "TaskCreate": ({"subject", "description"}, {"activeForm", "metadata"}),
    "TaskGet": ({"taskId"}, set()),
    "TaskList": (set(), set()),
    "TaskUpdate": (
        {"taskId"},
        {"status", "subject", "description", "activeForm", "owner", "addBlocks", "addBlockedBy", "metadata"},
    ),
    "WebFetch": ({"url", "prompt"}, set()),
    "WebSearch": ({"query"}, {"allowed_domains", "blocked_domains"}),
    "REPL": ({"code"}, {"description", "timeout", "reset"}),
    "LSP": ({"operation", "filePath"}, {"line", "character", "query"}),
    "ToolSearch": ({"query"}, {"max_results"}),
    "Skill": ({"skill"}, {"args"}),
    "ListMcpResources": (set(), {"server"}),
    "ReadMcpResource": ({"server", "uri"}, set()),
    "TeamCreate": ({"team_name"}, {"description", "agent_type"}),
    "TeamDelete": (set(), set()),
    "ListPeers": (set(), set()),
    "AskUserQuestion": ({"questions"}, set()),
    "TodoWrite": ({"todos"}, set()),
    "SendUserMessage": ({"message"}, {"attachments", "status"}),
    "EnterPlanMode": (set(), set()),
    "ExitPlanMode": (set(), set()),
    "EnterWorktree": (set(), {"name", "path"}),
    "ExitWorktree": ({"action"}, {"discard_changes"}),
    "Config": (set(), {"setting", "value"}),
    "Sleep": ({"seconds"}, {"reason"}),
}
EXTENSION = {"ToolSearch", "ListMcpResources", "ReadMcpResource"}
TOOLS = {tool.name: tool for tool in builtin_tools()}
LIMITS = {"Bash": 30_000, "TaskOutput": 30_000, "Grep": 20_000, "WebFetch": 100_000, "Read": None}


def test_there_is_one_of_each_and_nothing_else() -> None:
    assert sorted(TOOLS) == sorted(FIELDS)
    assert len(builtin_tools()) == len(TOOLS)


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_schema_has_the_known_fields_each_described(name: str) -> None:
    schema = TOOLS[name].json_schema()
    required, optional = FIELDS[name]
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert set(properties) == required | optional
    assert set(schema.get("required", [])) == required
    assert schema["additionalProperties"] is False
    assert all("description" in value for value in properties.values())


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_prompt_is_there_and_the_result_limit_is_the_known_one(name: str) -> None:
    tool = TOOLS[name]
    assert len(tool.prompt()) > 50
    assert tool.max_result_chars == LIMITS.get(name, 50_000)
    assert 10 < len(tool.description()) < 80
    assert "\n" not in tool.description()
    assert tool.search_hint
    assert tool.group in {"files", "shell", "network", "agents", "people", "system", "extension"}


def example(tool: AnyTool) -> object:
    samples: dict[str, object] = {
        "content": "x",
        "command": "make",
        "old_string": "a",
        "new_string": "b",
        "prompt": "p",
        "message": "m",
    }
    samples |= {"query": "words", "operation": "hover", "action": "keep", "seconds": "1"}
    samples |= {"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]}
    samples |= {"questions": [{"question": "q?", "header": "h", "options": [{"label": "a"}, {"label": "b"}]}]}
    required = FIELDS[tool.name][0]
    return tool.Input.model_validate({name: samples.get(name, "x") for name in required})


def test_only_what_reads_is_read_only_and_side_by_side() -> None:
    safe = {name for name, tool in TOOLS.items() if tool.is_concurrency_safe(example(tool))}
    reading = {name for name, tool in TOOLS.items() if tool.is_read_only(example(tool))}
    files = {"Read", "Glob", "Grep", "TaskGet", "TaskList", "TaskOutput"}
    alone = {"AskUserQuestion", "SendUserMessage"}
    own = {"ListPeers", "Config", "Sleep"}
    assert reading == {"WebFetch", "WebSearch", "LSP", *EXTENSION} | files | own | alone
    assert safe == reading - alone | {"Agent"}


def test_bash_is_read_only_and_side_by_side_exactly_when_its_command_only_reads() -> None:
    bash = TOOLS["Bash"]
    for command in ("ls -la", "cat /etc/passwd", "git log | head -5", "echo cd; true"):
        assert bash.traits(bash.Input.model_validate({"command": command})) == READS, command
    for command in ("make", "ls > x", "ls; touch y", "cat $(x)", "rm -rf /", "cd src && ls"):
        traits = bash.traits(bash.Input.model_validate({"command": command}))
        assert (traits.read_only, traits.concurrency_safe) == (False, False), command
    assert bash.is_destructive(bash.Input.model_validate({"command": "git push --force"}))


def test_only_the_shell_fails_its_group() -> None:
    assert [name for name, tool in TOOLS.items() if tool.fails_group] == ["Bash"]


def test_what_is_repeated_after_a_crash_has_one_effect_by_its_key() -> None:
    idempotent = {name for name, tool in TOOLS.items() if tool.idempotent}
    assert idempotent == {"WebFetch", "WebSearch", *EXTENSION} | {
        "Agent",
        "SendMessage",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TeamCreate",
        "TeamDelete",
        "TodoWrite",
        "SendUserMessage",
        "EnterPlanMode",
        "EnterWorktree",
        "ExitWorktree",
        "Config",
    }
    asks_or_waits = {"AskUserQuestion", "ExitPlanMode", "ListPeers", "Sleep"}
    without_lease = {name for name, tool in TOOLS.items() if not tool.needs_lease}
    assert without_lease == idempotent | asks_or_waits | {"REPL", "Skill"}


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_the_title_is_one_plain_line(name: str) -> None:
    tool = TOOLS[name]
    title = tool.title(example(tool))
    assert title
    assert "\n" not in title


def test_each_tool_has_a_folder_of_its_own() -> None:
    folders = [Path(sys.modules[type(tool).__module__].__file__ or "").parent for tool in TOOLS.values()]
    assert len(set(folders)) == len(TOOLS)
    assert all((folder / "prompt.md").is_file() for folder in folders)
    assert isinstance(TOOLS["Read"], Tool)
