"""The pages about MCP servers and skills: their examples work, and what they say of keys is so; and `.mcp.json`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retinue.orchestrator.mcp.servers import CALL_S
from retinue.orchestrator.settings.servers import filled, servers_in
from retinue.orchestrator.spec.load import load_spec_text
from retinue.orchestrator.spec.mcp import McpServerSpec
from retinue.tools.extension.skills.parse import parse_skill

DOCS = Path(__file__).parents[3] / "docs"
MCP, SKILLS = (DOCS / "mcp.md").read_text("utf-8"), (DOCS / "skills.md").read_text("utf-8")
AROUND = "version: 1\nname: x\nmodel: script:s.yaml\nagents: {a: {prompt: hi}}\n"


def example(page: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def keys_in(page: str) -> set[str]:
    return {
        name for cell in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`([^`]+)`", cell)
    }


def test_the_example_of_a_server_loads_and_its_secret_is_kept_from_records() -> None:
    loaded = load_spec_text(AROUND + example(MCP, "yaml"), env={"TRACKER_TOKEN": "abcdefghijkl"})
    server = loaded.spec.mcp_servers["tracker"]
    assert server.env == {"TRACKER_TOKEN": "abcdefghijkl"}
    assert server.network == ("tracker.example.org",)
    assert "abcdefghijkl" in loaded.secrets


def test_the_page_names_every_key_of_a_server() -> None:
    assert set(McpServerSpec.model_fields) <= keys_in(MCP)


def test_the_example_of_a_repositorys_servers_is_read_and_filled_in() -> None:
    servers, warnings = servers_in(example(MCP, "json").encode())
    assert warnings == ()
    (server,) = (filled(each, {"DOCS_KEY": "k"}) for each in servers)
    assert (server.command, server.args, server.env) == ("docs-mcp", ("--root", "docs"), {"DOCS_KEY": "k"})
    assert server.timeout_s == CALL_S


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "Invalid JSON"),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": {"a": {"type": "http", "url": "https://x"}}}', "type http are not supported yet"),
        ('{"mcpServers": {"a": {}}}', "it has no command"),
        ('{"mcpServers": {"a b": {"command": "x"}}}', "letters, digits"),
    ],
)
def test_what_cannot_be_started_is_said_and_nothing_else_is_lost(content: str, says: str) -> None:
    servers, warnings = servers_in(content.encode())
    assert servers == ()
    assert len(warnings) == 1
    assert says in warnings[0]


def test_variables_of_a_repositorys_servers_have_defaults_and_unset_ones_stay() -> None:
    text = '{"mcpServers": {"a": {"command": "${BIN:-run}", "args": ["${X}", "${Y:-}"], "timeout": 2000}}}'
    (server,), _ = servers_in(text.encode())
    assert filled(server, {}).command == "run"
    assert filled(server, {"BIN": "go"}).args == ("${X}", "")
    assert server.timeout_s == 2.0


def test_the_example_of_a_skill_is_one_without_a_warning() -> None:
    skill, warnings = parse_skill("skills/release/SKILL.md", example(SKILLS, "markdown").encode(), "user", trusted=True)
    assert warnings == ()
    assert (skill.name, skill.arguments, skill.allowed_tools) == ("release", ("version",), ("Bash(git tag *)", "Read"))


def test_the_page_names_every_key_of_a_skill() -> None:
    keys = {"name", "description", "when_to_use", "argument-hint", "arguments", "allowed-tools", "disallowed-tools"}
    keys |= {"context: fork", "agent", "model", "disable-model-invocation: true", "user-invocable: false", "paths"}
    assert keys <= keys_in(SKILLS)
