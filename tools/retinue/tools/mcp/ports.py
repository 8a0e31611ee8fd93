"""What tools need to reach MCP servers, as a protocol and the values that cross it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from pydantic import JsonValue

from retinue.tools.ports import PortModel

McpStateName = Literal["connecting", "connected", "failed"]


class McpServerState(PortModel):
    """`detail` says why a server failed, in words for people and models; never a secret."""

    name: str
    state: McpStateName
    detail: str = ""
    has_resources: bool = False


class McpToolFacts(PortModel):
    """One tool of a server as the server describes it. A hint that it does not give is None.

    name             the server's own, not normalised
    always_load      it is not deferred
    asks_a_person    it wants to be asked about at every call, whatever the mode
    max_chars        how large its results may be, where it says so
    timeout_s        the longest that one call may take
    """

    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: dict[str, JsonValue] = {}
    read_only: bool | None = None
    destructive: bool | None = None
    search_hint: str = ""
    always_load: bool = False
    asks_a_person: bool = False
    max_chars: int | None = None
    timeout_s: float | None = None


class McpListing(PortModel):
    """All servers and all their tools; `version` changes whenever anything in it does."""

    version: int = 0
    servers: tuple[McpServerState, ...] = ()
    tools: tuple[McpToolFacts, ...] = ()


class McpBlock(PortModel):
    """A piece of an answer. `data` is base64, of images, audio and binary resources; `uri` names a resource."""

    kind: Literal["text", "image", "audio", "resource", "link"]
    text: str = ""
    data: str = ""
    media_type: str = ""
    uri: str = ""
    name: str = ""


class McpAnswer(PortModel):
    """`is_error`: the tool ran, and says that it failed."""

    blocks: tuple[McpBlock, ...] = ()
    is_error: bool = False


class McpResource(PortModel):
    server: str
    uri: str
    name: str
    mime_type: str = ""
    description: str = ""


class McpRequest(PortModel):
    """One call of a tool. `key` names it for progress and for calling it off; the protocol has no idempotency."""

    server: str
    tool: str
    arguments: dict[str, JsonValue] = {}
    key: str = ""
    timeout_s: float | None = None


class McpPort(Protocol):
    """The MCP servers of a run. ToolError says which server failed and why; the others are not touched by it."""

    async def listing(self, wait_s: float = 0.0) -> McpListing:
        """What is known now. Waits at most so long for servers that are still connecting."""
        ...

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        """Cancelling it calls it off at the server, too."""
        ...

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        """Of one server, or of all that have some. ToolError for a server that there is not."""
        ...

    async def read(self, server: str, uri: str) -> tuple[McpBlock, ...]: ...
