"""The ways to search: the model provider's own, an MCP tool, or a service that answers with JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue

from retinue.tools.errors import SpecError, ToolError
from retinue.tools.ports import SearchAnswer, SearchHit, SearchProvider, SearchQuery, ServerSearchPort
from retinue.tools.text import one_line
from retinue.tools.web.search.constants import MAX_ANSWER_BYTES, MAX_TEXT_CHARS
from retinue.tools.web.search.hits import host_of
from retinue.tools.web.settings import SearchEndpoint, SearchSettings

CallMcp = Callable[[str, Mapping[str, JsonValue]], Awaitable[str]]
"""Calls an MCP tool by its full name, and returns the text of its answer. ToolError when it fails."""

_LINK = re.compile(r"\[([^\]\n]{1,300})\]\((https?://[^\s)]{1,2000})\)|(https?://[^\s<>\"')\]]{1,2000})")
_NAMES = {"title": ("title", "name"), "url": ("url", "link", "href"), "snippet": ("snippet", "description", "content")}


def provider_of(
    settings: SearchSettings,
    *,
    env: Mapping[str, str],
    server: ServerSearchPort | None = None,
    call_mcp: CallMcp | None = None,
) -> SearchProvider | None:
    """The provider that the settings name; None when they name none. SpecError for one that cannot be had."""
    if settings.endpoint is not None:
        return HttpSearch(settings.endpoint, _key(settings.endpoint, env))
    if settings.mcp_tool is not None:
        if call_mcp is None:
            raise SpecError(f"web.search.mcp_tool: there is no MCP server here that has {settings.mcp_tool}")
        return McpSearch(call_mcp, settings.mcp_tool)
    if settings.server_side:
        if server is None:
            raise SpecError("web.search.server_side: the model in use has no search of its own")
        return ServerSearch(server)
    return None


def _key(endpoint: SearchEndpoint, env: Mapping[str, str]) -> str:
    if endpoint.key_env is None:
        return ""
    key = env.get(endpoint.key_env, "")
    if not key:
        raise SpecError(f"web.search.endpoint.key_env: the environment variable {endpoint.key_env} is not set")
    return key


@dataclass(frozen=True, slots=True)
class ServerSearch:
    """The model provider searches; one request to the model per question."""

    port: ServerSearchPort

    async def search(self, query: SearchQuery) -> SearchAnswer:
        return await self.port.server_search(query)


@dataclass(frozen=True, slots=True)
class McpSearch:
    """A tool of an MCP server, which takes `query`. Results are taken from JSON, or from the links of a text."""

    call: CallMcp
    tool: str

    async def search(self, query: SearchQuery) -> SearchAnswer:
        text = await self.call(self.tool, {"query": query.query})
        hits = _hits_in(text)
        return SearchAnswer(hits=hits, text="" if _as_json(text) is not None else text[:MAX_TEXT_CHARS])


@dataclass(frozen=True, slots=True)
class HttpSearch:
    """The address is the settings' own, so it may be local. `key` is sent in one header and shown nowhere."""

    endpoint: SearchEndpoint
    key: str = field(default="", repr=False)

    async def search(self, query: SearchQuery) -> SearchAnswer:
        import httpx2  # here, so that a process that only lists tools does not load it

        from retinue.tools.web.body import ACCEPTED, read_body

        place = self.endpoint
        fields = {**place.parameters, place.query_field: query.query}
        headers = {"Accept": "application/json", "Accept-Encoding": ACCEPTED, **self._authorisation()}
        name = host_of(place.url)
        try:
            async with httpx2.AsyncClient(trust_env=False, timeout=place.timeout_s) as client:
                request = (
                    client.build_request("POST", place.url, json=fields, headers=headers)
                    if place.method == "POST"
                    else client.build_request(
                        "GET", httpx2.URL(place.url).copy_merge_params(_flat(fields)), headers=headers
                    )
                )
                response = await client.send(request, stream=True, follow_redirects=False)
                try:
                    encoding = response.headers.get("content-encoding", "")
                    body = await read_body(response.aiter_raw(), encoding, MAX_ANSWER_BYTES)
                finally:
                    await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # The error's own text may hold the whole address, and with it a parameter that is a key.
            raise ToolError(f"The search service at {name} could not be reached ({type(error).__name__}).") from None
        if response.status_code != 200:
            raise ToolError(f"The search service at {name} answered {response.status_code}.")
        return SearchAnswer(hits=hits_of(body, place))

    def _authorisation(self) -> dict[str, str]:
        return {self.endpoint.key_header: f"{self.endpoint.key_prefix}{self.key}"} if self.key else {}


def hits_of(body: bytes, place: SearchEndpoint) -> tuple[SearchHit, ...]:
    """ToolError when the answer has no list where the settings say that it is."""
    try:
        found: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        raise ToolError("The search service did not answer with JSON.") from None
    for part in place.results_path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if not isinstance(found, list):
        raise ToolError(
            f"The search service's answer has no list at {place.results_path!r}: set web.search.endpoint.results_path."
        )
    names = {"title": (place.title_field,), "url": (place.url_field,), "snippet": (place.snippet_field,)}
    return tuple(hit for entry in found if (hit := _hit_of(entry, names)) is not None)


def _hit_of(entry: JsonValue, names: Mapping[str, tuple[str, ...]]) -> SearchHit | None:
    if not isinstance(entry, dict):
        return None
    values = {
        key: next((v for name in options if isinstance(v := entry.get(name), str)), "")
        for key, options in names.items()
    }
    if not host_of(values["url"]):
        return None
    return SearchHit(title=values["title"] or values["url"], url=values["url"], snippet=values["snippet"])


def _flat(fields: Mapping[str, JsonValue]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def _as_json(text: str) -> JsonValue:
    try:
        return cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError):
        return None


def _hits_in(text: str) -> tuple[SearchHit, ...]:
    """A list of results, at the top or as the only list of an object; else the links in the text."""
    found = _as_json(text)
    if isinstance(found, dict):
        lists = [value for value in found.values() if isinstance(value, list)]
        found = lists[0] if lists else []
    if isinstance(found, list):
        return tuple(hit for entry in found if (hit := _hit_of(entry, _NAMES)) is not None)
    return tuple(
        SearchHit(title=one_line(match[1] or match[3]), url=match[2] or match[3].rstrip(".,;:"))
        for match in _LINK.finditer(text)
    )
