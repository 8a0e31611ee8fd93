"""The tools of one agent as its model is told about them: which are deferred, which were loaded, which came late."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import JsonValue

from retinue.agents.boot import ToolLoading
from retinue.agents.model.messages import ToolSpec
from retinue.tools.errors import RetinueError
from retinue.tools.mcp.ports import McpListing, McpPort, McpToolFacts
from retinue.tools.ports import DeferredTool
from retinue.tools.registry.deferral import deferred_names
from retinue.tools.text import one_line

if TYPE_CHECKING:
    from retinue.tools.base import AnyTool
    from retinue.tools.registry.pool import Found, ToolPool

FIRST_WAIT_S = 5.0
"""How long the first request of an agent waits for servers that are still connecting."""

Assemble = Callable[[Sequence["AnyTool"]], "ToolPool"]


@dataclass(frozen=True, slots=True)
class News:
    """Deferred tools that the model has not heard of, and those that it has heard of and that are gone."""

    announced: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        parts: list[str] = []
        if self.announced:
            parts += ["These tools can be loaded with ToolSearch (select:NAME), and called then:", *self.announced]
        if self.withdrawn:
            parts += ["These tools are not there any more:", *self.withdrawn]
        return "\n".join(["<system-reminder>", *parts, "</system-reminder>"]) if parts else ""


class Toolbelt:
    """What was offered once stays for the life of the process, so that nothing before it moves: a call of a tool whose
    server is gone is told so.

    loading   how the definitions of deferred tools reach the model: what its provider can do
    loaded    names of those that were loaded, in the order in which they were: read from the agent's records
    assemble  makes the pool of the built-in tools and of those given
    """

    def __init__(
        self, assemble: Assemble, loading: ToolLoading, loaded: Collection[str], *, mcp: McpPort | None, strict: bool
    ) -> None:
        self._assemble = assemble
        self._loading: ToolLoading = loading
        self._loaded = loaded
        self._mcp = mcp
        self._strict = strict
        self._facts: dict[tuple[str, str], McpToolFacts] = {}
        self._listing: McpListing | None = None
        self._left_out: tuple[str, ...] = ()
        self._take(())

    # --- for the pipeline ---

    @property
    def pool(self) -> ToolPool:
        return self._pool

    @property
    def names(self) -> tuple[str, ...]:
        return self._pool.names

    @property
    def only_names(self) -> Mapping[str, frozenset[str]]:
        return self._pool.only_names

    def find(self, name: str) -> Found | None:
        return self._pool.find(name)

    def tool_of(self, name: str) -> AnyTool | None:
        found = self._pool.find(name)
        return found.tool if found else None

    # --- for the model ---

    async def refresh(self) -> None:
        """Take in what servers changed. They cost nobody a request: what cannot be had now comes with a later one."""
        if self._mcp is None:
            return
        with suppress(RetinueError):
            listing = await self._mcp.listing(FIRST_WAIT_S if self._listing is None else 0.0)
            if self._listing is None or listing.version != self._listing.version:
                self._facts |= {(facts.server, facts.name): facts for facts in listing.tools}
                self._listing = listing
                from retinue.tools.mcp.tool import mcp_tools  # here, because few agents have servers

                tools, self._left_out = mcp_tools(self._facts.values())
                self._take(tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The built-in tools first. Where the client loads, what was loaded comes last, in the order of loading."""
        if self._loading != "client":
            return self._specs
        later = {spec.name: spec for spec in self._specs if spec.name in self._deferred}
        first = tuple(spec for spec in self._specs if spec.name not in later)
        return (*first, *(later[name] for name in self._loaded if name in later))

    def news(self, announced: Collection[str]) -> News:
        """`announced` are the names that the model heard of so far."""
        names = [tool.name for tool in self.deferred()]
        return News(
            tuple(name for name in names if name not in announced),
            tuple(name for name in announced if name not in names),
        )

    # --- CatalogPort ---

    def deferred(self) -> tuple[DeferredTool, ...]:
        return self._catalog

    def is_loaded(self, name: str) -> bool:
        return self._pool.find(name) is not None and (name not in self._deferred or name in self._loaded)

    def remarks(self) -> tuple[str, ...]:
        servers = self._listing.servers if self._listing else ()
        connecting = [one_line(server.name, 60) for server in servers if server.state == "connecting"]
        failed = [
            f"The MCP server {one_line(server.name, 60)} failed, its tools are missing: {one_line(server.detail, 300)}"
            for server in servers
            if server.state == "failed"
        ]
        still = [f"Still connecting, so search again later: {', '.join(connecting)}."] if connecting else []
        return (*still, *failed, *self._left_out)

    def _take(self, others: Iterable[AnyTool]) -> None:
        self._pool = pool = self._assemble(tuple(others))
        self._deferred = deferred_names(pool.tools) if self._loading != "all" else frozenset[str]()
        self._catalog = tuple(
            DeferredTool(
                name=spec.name,
                description=spec.description,
                search_hint=tool.search_hint,
                input_schema=spec.input_schema,
            )
            for tool, spec in zip(pool.tools, pool.specs(), strict=True)
            if spec.name in self._deferred
        )
        by_reference = self._loading == "reference"
        self._specs = tuple(
            ToolSpec(
                name=spec.name,
                description=spec.description,
                input_schema=spec.input_schema,
                builtin=n < pool.builtin and (by_reference or spec.name not in self._deferred),
                deferred=by_reference and spec.name in self._deferred,
                strict=self._strict and can_be_strict(spec.input_schema),
            )
            for n, spec in enumerate(pool.specs())
        )


def can_be_strict(schema: Mapping[str, JsonValue]) -> bool:
    """Whether a provider can hold the model to it: no other keys than those named."""
    return schema.get("additionalProperties") is False
