"""The HTTP provider of WebSearch against a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.ports import SearchQuery
from retinue.tools.web.search.constants import MAX_ANSWER_BYTES
from retinue.tools.web.search.providers import provider_of
from retinue.tools.web.search.tool import WebSearch, WebSearchInput
from retinue.tools.web.settings import SearchEndpoint, SearchSettings
from support.calls import context
from support.web_server import WebServer, answer, redirect, web_server

QUERY = SearchQuery(query="ray & actors")
RESULTS = [
    {"title": "One", "url": "https://a.com/1", "content": "first"},
    {"title": "", "url": "https://b.com/2"},
    {"title": "no address"},
    "nonsense",
]


@pytest.fixture
async def server() -> AsyncGenerator[WebServer]:
    async with web_server() as served:
        yield served


def endpoint(server: WebServer, **fields: object) -> SearchSettings:
    return SearchSettings(endpoint=SearchEndpoint.model_validate({"url": f"{server.url}/search", **fields}))


async def test_a_service_of_ones_own_is_asked_with_its_parameters(server: WebServer) -> None:
    server.routes["/search"] = answer(json.dumps({"results": RESULTS}).encode(), "application/json")
    provider = provider_of(endpoint(server, parameters={"format": "json", "page": 2}), env={})
    assert provider is not None
    args = WebSearchInput(query=QUERY.query)
    found = await WebSearch().call(args, context(search=provider), lambda _: None)
    assert [(hit.title, hit.url, hit.snippet) for hit in found.data.hits] == [
        ("One", "https://a.com/1", "first"),
        ("https://b.com/2", "https://b.com/2", ""),
    ]
    assert server.asked[0].path == "/search?format=json&page=2&q=ray+%26+actors"
    assert "authorization" not in server.asked[0].headers


async def test_a_service_with_a_key_and_another_form_of_answer(server: WebServer) -> None:
    web = {"web": {"results": [{"name": "N", "link": "https://a.com", "text": "t"}]}}
    server.routes["/search"] = answer(json.dumps(web).encode(), "application/json")
    settings = endpoint(
        server,
        method="POST",
        query_field="question",
        key_env="SEARCH_KEY",
        key_header="X-Token",
        key_prefix="",
        results_path="web.results",
        title_field="name",
        url_field="link",
        snippet_field="text",
    )
    provider = provider_of(settings, env={"SEARCH_KEY": "secret-1"})
    assert provider is not None
    hits = (await provider.search(QUERY)).hits
    assert [(hit.title, hit.url, hit.snippet) for hit in hits] == [("N", "https://a.com", "t")]
    assert server.asked[0].headers["x-token"] == "secret-1"
    assert json.loads(server.asked[0].body) == {"question": QUERY.query}


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (answer(b"secret-1", status="401 Unauthorized"), "answered 401"),
        (redirect("http://169.254.169.254/"), "answered 302"),
        (answer(b"<html>"), "JSON"),
        (answer(b"{}"), "results_path"),
        (b"garbage\r\n\r\n", "could not be reached"),
        (answer(b"", headers={"Content-Length": str(MAX_ANSWER_BYTES + 1)}), "could not be reached"),
        (answer(b"x" * (MAX_ANSWER_BYTES + 1)), "larger than"),
    ],
    ids=range(7),
)
async def test_each_failure_says_what_it_is_without_the_key(server: WebServer, sent: bytes, says: str) -> None:
    server.routes["/search"] = sent
    provider = provider_of(endpoint(server, key_env="SEARCH_KEY"), env={"SEARCH_KEY": "secret-1"})
    assert provider is not None
    with pytest.raises(ToolError, match=says) as caught:
        await provider.search(QUERY)
    assert "secret-1" not in str(caught.value)


async def test_a_service_that_is_not_there_is_named_without_its_parameters() -> None:
    settings = SearchSettings(endpoint=SearchEndpoint(url="http://127.0.0.1:1/search?token=secret-1"))
    provider = provider_of(settings, env={})
    assert provider is not None
    with pytest.raises(ToolError, match=r"at 127\.0\.0\.1 could not be reached") as caught:
        await provider.search(QUERY)
    assert "secret-1" not in str(caught.value)
