"""The spec's part about the web: how agents search it, and which servers of your own they may read."""

from __future__ import annotations

import re
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, WithJsonSchema

from retinue.orchestrator.spec.fields import DURATION_SCHEMA, BaseUrl, Switch, Text, seconds_of, wrong
from retinue.orchestrator.spec.part import SpecPart
from retinue.tools.web.settings import SearchEndpoint, SearchSettings, WebSettings

_LOCAL = re.compile(r"(?=.{1,253}(:|\Z))[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MCP_TOOL = re.compile(r"mcp__[A-Za-z0-9_-]+?__[A-Za-z0-9_-]+\Z")
_LONGEST_S = 300.0


def _local_hosts(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise wrong("a list of hosts, as in [localhost:3000]")
    return tuple(_local_host(host) for host in cast("list[object] | tuple[object, ...]", value))


def _local_host(value: object) -> str:
    expected = "hosts, each with its port or without, as in localhost:3000"
    if isinstance(value, str) and "://" in value:
        raise wrong(expected, "write the host alone, without http://")
    if not isinstance(value, str) or not _LOCAL.match(value.lower()):
        raise wrong(expected, f"{str(value)[:60]!r} is none")
    return value.lower()


def _variable(value: object) -> str:
    if not isinstance(value, str) or not _VARIABLE.match(value):
        raise wrong("the name of an environment variable, as in SEARCH_KEY", "the key itself is no part of a spec")
    return value


def _parameter(value: object) -> object:
    if not isinstance(value, str | int | float | bool):
        raise wrong("text, a number, true or false")
    return value


def _mcp_tool(value: object) -> str:
    if not isinstance(value, str) or not _MCP_TOOL.match(value):
        raise wrong("the tool of an MCP server, as in mcp__search__find")
    return value


def _patience(value: object) -> float:
    seconds = seconds_of(value)
    if seconds > _LONGEST_S:
        raise wrong("a duration of at most 5m")
    return seconds


LocalHosts = Annotated[
    tuple[str, ...],
    BeforeValidator(_local_hosts),
    WithJsonSchema({"type": "array", "items": {"type": "string", "minLength": 1}}),
]
Variable = Annotated[
    str, BeforeValidator(_variable), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
]
Parameter = Annotated[
    str | int | float | bool, BeforeValidator(_parameter), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
Patience = Annotated[float, BeforeValidator(_patience), WithJsonSchema(DURATION_SCHEMA)]
McpTool = Annotated[str, BeforeValidator(_mcp_tool), WithJsonSchema({"type": "string", "pattern": "^mcp__.+__.+$"})]


class EndpointSpec(SpecPart):
    """A search service that answers with JSON."""

    url: BaseUrl
    """Its whole address."""

    method: Literal["GET", "POST"] = "GET"
    """`GET` sends parameters in the address, `POST` a JSON object."""

    query_field: Text = "q"
    """Which of them takes the question."""

    parameters: dict[str, Parameter] = {}
    """What else is sent with each question."""

    key_env: Variable | None = None
    """The environment variable of the launching shell that holds the key. Agents never see it."""

    key_header: Text = "Authorization"
    """The header that the key is sent in."""

    key_prefix: str = "Bearer "
    """What stands before the key in it."""

    results_path: Text = "results"
    """Where the list of results is in the answer, with dots, as in `web.results`."""

    title_field: Text = "title"
    """The field of a result that holds its title."""

    url_field: Text = "url"
    """The field of a result that holds its address."""

    snippet_field: Text = "content"
    """The field of a result that holds some text of it."""

    timeout: Patience = 30.0
    """The most that a search may take, up to 5m."""


class SearchSpec(SpecPart):
    """One of three ways to search. WebSearch is there when one is given."""

    endpoint: EndpointSpec | None = None
    """A search service that answers with JSON."""

    mcp_tool: McpTool | None = None
    """A tool of an MCP server that takes `query`, as in `mcp__search__find`."""

    server_side: Switch = False
    """The model provider's own search. Only with anthropic."""

    @property
    def ways(self) -> tuple[str, ...]:
        """The keys of those that are given."""
        given = {"endpoint": self.endpoint, "mcp_tool": self.mcp_tool, "server_side": self.server_side or None}
        return tuple(key for key, value in given.items() if value is not None)


class WebSpec(SpecPart):
    """What WebFetch and WebSearch reach."""

    local_hosts: LocalHosts = ()
    """Servers of yours that may be read although local or private, and without TLS, as in `[localhost:3000]`."""

    search: SearchSpec = SearchSpec()
    """How WebSearch searches."""

    def settings(self) -> WebSettings:
        """As the tools take it."""
        return WebSettings(local_hosts=frozenset(self.local_hosts), search=_search(self.search))


def _search(spec: SearchSpec) -> SearchSettings:
    place = spec.endpoint
    endpoint = None
    if place is not None:
        values = place.model_dump(exclude={"timeout"})
        endpoint = SearchEndpoint.model_validate({**values, "timeout_s": place.timeout})
    return SearchSettings(endpoint=endpoint, mcp_tool=spec.mcp_tool, server_side=spec.server_side)
