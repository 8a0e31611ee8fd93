"""The words of a spec: names that are taken, tools that exist, and everything that is known but does not work yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from retinue.tools.registry.builtin import built_in

DEFINITIONS = ("general-purpose", "lead", "coder", "reviewer", "tester", "explore", "plan", "merger")
RESERVED_NAMES = ("result", "tip", "base", "team", "human")
PROVIDERS = ("anthropic", "script", "replay")

TOOLS = tuple(sorted(entry.name for entry in built_in()))
"""What a spec may name: the tools that this build has."""
LATER_TOOLS = ("PowerShell",)


@dataclass(frozen=True, slots=True)
class NotYet:
    """Something that the spec's author may know and that this version refuses by name.

    `paths` are patterns in which `*` is any one key or index. A `key` is refused whatever it holds, a `value` when it
    is one of `values`; a `rule` and a `tool` are found by the checks of rules and tool lists. `example` is a path and a
    value that is refused, for the test that walks this table.
    """

    part: str
    match: Literal["key", "value", "rule", "tool"]
    paths: tuple[str, ...]
    remedy: str
    example: tuple[str, JsonValue]
    values: tuple[str, ...] = ()


NOT_SUPPORTED_YET: tuple[NotYet, ...] = (
    NotYet("hooks", "key", ("hooks",), "remove it", ("hooks", {"PreToolUse": []})),
    NotYet("mcp of an agent", "key", ("agents.*.mcp",), "remove it", ("agents.coder.mcp", ["docs"])),
    NotYet(
        "placement",
        "key",
        ("agents.*.placement",),
        "remove it; all agents run on this machine",
        ("agents.coder.placement", {"node": "gpu-1"}),
    ),
    NotYet(
        "display: tmux",
        "value",
        ("agents.*.display",),
        "write none; `retinue logs RUN AGENT -f` follows an agent",
        ("agents.coder.display", "tmux"),
        ("tmux",),
    ),
    NotYet(
        "on_ask: ask and wait",
        "value",
        ("permissions.on_ask", "agents.*.permissions.on_ask"),
        "write deny, and allow what the agents need",
        ("permissions.on_ask", "ask"),
        ("ask", "wait"),
    ),
    NotYet(
        f"the tools {', '.join(LATER_TOOLS)}",
        "tool",
        ("agents.*.tools.allow", "permissions.*", "agents.*.permissions.*"),
        "remove it",
        ("agents.coder.tools", {"allow": ["PowerShell"]}),
        LATER_TOOLS,
    ),
)
