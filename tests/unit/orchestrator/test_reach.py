"""What a spec and the settings say of the web and of language servers, on the way to an agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.agents.boot import RuleSet
from retinue.agents.definition import builtin_definitions
from retinue.orchestrator.launch import Where, executes, plan_launch
from retinue.orchestrator.prepare import check_access
from retinue.orchestrator.runtime.reach import McpCalls, NoSearch
from retinue.orchestrator.settings.load import NOTHING_SET, LaunchSettings
from retinue.orchestrator.spec import load_spec_text
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.trust.launch import spec_grants
from retinue.tools.errors import EnvironmentProblem, SpecError, ToolError
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.mcp.ports import McpAnswer, McpBlock, McpListing, McpRequest, McpResource, McpToolFacts
from retinue.tools.ports import SearchQuery
from retinue.tools.web.settings import WebSettings

BASE = "version: 1\nname: x\nmodel: script:s.yaml\nagents: {a: {prompt: hi, isolation: none}}\n"
WEB = "web: {local_hosts: [localhost:3000], search: {endpoint: {url: 'https://x.example.org', key_env: THE_KEY}}}\n"
LSP = "lsp: {python: {command: own, args: [--stdio], extension_to_language: {.py: python}, idle_timeout: 1.5}}\n"
OTHER = LanguageServer.model_validate({"command": "other", "extensionToLanguage": {".py": "python"}})


def planned(text: str, settings: LaunchSettings = NOTHING_SET, *, base: str = BASE) -> LaunchPlan:
    place = Path("/r")
    where = Where("r", "2026-12-01", place / "run", place, place / "locks", place)
    spec = load_spec_text(base + text, env={}).spec
    return plan_launch(spec, where, None, builtin_definitions().__getitem__, RuleSet(), settings)


def set_to(**values: object) -> LaunchSettings:
    return LaunchSettings(settings=NOTHING_SET.settings.model_copy(update=values))


def test_the_web_of_the_spec_takes_the_place_of_that_of_the_settings() -> None:
    settings = set_to(web=WebSettings(local_hosts=frozenset({"other"})))
    web = planned(WEB, settings).settings.web
    assert web.local_hosts == {"localhost:3000"}
    assert web.search.endpoint is not None
    assert web.search.endpoint.key_env == "THE_KEY"
    assert planned("", settings).settings.web.local_hosts == {"other"}


def test_language_servers_of_the_spec_come_before_those_of_the_settings() -> None:
    settings = set_to(lsp={"python": OTHER, "more": OTHER})
    servers = planned(LSP, settings).settings.lsp
    assert [(name, server.command) for name, server in servers.items()] == [("python", "own"), ("more", "other")]
    assert servers["python"].idle_timeout == 1_500


def test_a_language_server_is_a_command_that_runs() -> None:
    assert executes(planned(LSP)) == ("lsp.python: own --stdio",)


def test_a_small_model_goes_to_every_agent_with_its_server() -> None:
    text = "small_model: {use: 'anthropic:small', base_url: 'http://127.0.0.1:1'}\nlimits: {usd: none}\n"
    plan = planned(text)
    assert [boot.small_model for boot in plan.members] == ["anthropic:small"]
    assert plan.endpoints == {"anthropic:small": "http://127.0.0.1:1"}
    with pytest.raises(SpecError, match="the price of anthropic:small is not known"):
        planned("small_model: anthropic:small\n")


def test_a_model_at_two_addresses_is_named() -> None:
    text = "small_model: {use: 'anthropic:m', base_url: 'http://a.example.org'}\nlimits: {usd: none}\n"
    with pytest.raises(SpecError, match=r"agents\.a\.model: anthropic:m is reached at two addresses"):
        planned(text, base=BASE.replace("script:s.yaml", "anthropic:m"))


def test_a_key_of_a_search_that_is_not_set_stops_the_launch() -> None:
    spec = load_spec_text(BASE + WEB, env={}).spec
    check_access(spec, {"THE_KEY": "x"})
    with pytest.raises(EnvironmentProblem, match=r"web\.search\.endpoint\.key_env: THE_KEY is not set"):
        check_access(spec, {})


def test_what_a_spec_reaches_waits_for_trust() -> None:
    assert spec_grants(load_spec_text(BASE + WEB + LSP, env={}).spec) == (
        "1 language server",
        "1 local server to read",
        "a search of the web",
    )


async def test_a_search_that_cannot_be_had_says_why_when_it_is_used() -> None:
    with pytest.raises(ToolError, match=r"The web cannot be searched: no key\."):
        await NoSearch("no key").search(SearchQuery(query="x"))


class Servers:
    """One MCP server with one tool."""

    def __init__(self, answer: McpAnswer) -> None:
        self.answer = answer
        self.asked: list[McpRequest] = []

    async def listing(self, wait_s: float = 0.0) -> McpListing:
        return McpListing(tools=(McpToolFacts(server="web.search", name="find"),))

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        self.asked.append(request)
        return self.answer

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        return ()

    async def read(self, server: str, uri: str) -> tuple[McpBlock, ...]:
        return ()


ARGUMENTS: dict[str, JsonValue] = {"query": "x"}


async def test_a_search_by_an_mcp_tool_calls_it_by_its_name() -> None:
    servers = Servers(McpAnswer(blocks=(McpBlock(kind="text", text="https://a.example.org"),)))
    assert await McpCalls(servers)("mcp__web_search__find", ARGUMENTS) == "https://a.example.org"
    assert [(r.server, r.tool, r.arguments) for r in servers.asked] == [("web.search", "find", ARGUMENTS)]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("mcp__web_search__find", "The search by mcp__web_search__find failed: no luck"),
        ("mcp__a__b", "has the tool mcp__a__b"),
    ],
)
async def test_a_search_by_an_mcp_tool_that_fails_or_is_not_there_says_so(name: str, error: str) -> None:
    servers = Servers(McpAnswer(blocks=(McpBlock(kind="text", text="no luck"),), is_error=True))
    with pytest.raises(ToolError, match=error):
        await McpCalls(servers)(name, ARGUMENTS)
