"""The MCP servers of a repository's `.mcp.json`, in the form in which others write it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from retinue.orchestrator.mcp.servers import CALL_S, StdioServer

FILE = ".mcp.json"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    timeout: float | None = None
    always_load: bool = Field(default=False, alias="alwaysLoad")


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    servers: dict[str, _Entry] = Field(default={}, alias="mcpServers")


def servers_in(content: bytes) -> tuple[tuple[StdioServer, ...], tuple[str, ...]]:
    """Those that can be started, their variables not filled in; and a warning for each that cannot."""
    try:
        file = _File.model_validate_json(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, problem["loc"]))
        return (), (f"{FILE}: {place + ': ' if place else ''}{problem['msg']}; its servers are not started",)
    warnings = tuple(_wrong(file.servers))
    return tuple(_server(name, entry) for name, entry in file.servers.items() if not _why(name, entry)), warnings


def filled(server: StdioServer, env: Mapping[str, str]) -> StdioServer:
    """With `${NAME}` and `${NAME:-default}` from the launching environment; what is not set stays as it is written."""

    def fill(text: str) -> str:
        return _VARIABLE.sub(lambda m: env.get(m[1]) or (m[0] if m[2] is None else m[2]), text)

    return server.model_copy(
        update={
            "command": fill(server.command),
            "args": tuple(map(fill, server.args)),
            "env": {name: fill(value) for name, value in server.env.items()},
        }
    )


def _server(name: str, entry: _Entry) -> StdioServer:
    """A limit is given in milliseconds; one below a second is none."""
    limit = entry.timeout / 1_000 if entry.timeout is not None and entry.timeout >= 1_000 else CALL_S
    return StdioServer(
        name=name,
        command=entry.command,
        args=entry.args,
        env=entry.env,
        timeout_s=limit,
        always_load=entry.always_load,
    )


def _wrong(entries: Mapping[str, _Entry]) -> Iterator[str]:
    for name, entry in entries.items():
        if why := _why(name, entry):
            yield f"{FILE}: the server {name!r} is not started: {why}"


def _why(name: str, entry: _Entry) -> str:
    if not _NAME.match(name):
        return "a name has letters, digits, - and _ only"
    if entry.type != "stdio":
        return f"servers of the type {entry.type} are not supported yet"
    return "" if entry.command else "it has no command"
