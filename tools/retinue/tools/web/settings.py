"""What the person who runs agents says about the web. It comes from settings that are already trusted."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator


class WebModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchEndpoint(WebModel):
    """A search service that answers a request with JSON.

    query_field    the name of the parameter (GET), or of the field of the body (POST), that takes the question
    key_env        the environment variable that holds the key; the key itself is never part of the settings
    key_prefix     what stands before the key in its header
    results_path   where the list of results is in the answer, with dots: `web.results`
    """

    url: str
    method: Literal["GET", "POST"] = "GET"
    query_field: str = "q"
    parameters: dict[str, JsonValue] = {}
    key_env: str | None = None
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    results_path: str = "results"
    title_field: str = "title"
    url_field: str = "url"
    snippet_field: str = "content"
    timeout_s: float = Field(30, gt=0, le=300)

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        if not url.startswith(("https://", "http://")):
            raise ValueError("write the whole address, with https:// (or http:// for a service of your own)")
        return url


class SearchSettings(WebModel):
    """Which of the ways of searching is used; the first that is given counts, from top to bottom."""

    endpoint: SearchEndpoint | None = None
    mcp_tool: str | None = None
    server_side: bool = False


class WebSettings(WebModel):
    """`local_hosts`: `host` or `host:port` that may be reached although local or private, and without TLS."""

    local_hosts: frozenset[str] = frozenset()
    search: SearchSettings = SearchSettings()


DEFAULT_WEB = WebSettings()
