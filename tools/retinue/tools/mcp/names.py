"""How tools of MCP servers are called. Pure."""

from __future__ import annotations

import hashlib
import re

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
MOST_NAME = 64
"""What every provider takes as the name of a tool."""


def tool_name(server: str, tool: str) -> str:
    """`mcp__server__tool`, of letters, digits, `_` and `-` only. One that would be too long ends with a hash."""
    name = f"mcp__{normalised(server)}__{normalised(tool)}"
    if len(name) <= MOST_NAME:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:8]
    return f"{name[: MOST_NAME - 9]}_{digest}"


def normalised(part: str) -> str:
    return _UNFIT.sub("_", part)
