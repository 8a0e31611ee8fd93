"""Listing the tools stays cheap: what only running them needs is loaded then."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "asyncio",
    "subprocess",
    "ctypes",
    "multiprocessing",
    "rich",
    "anyio",
    "ray",
    "anthropic",
    "mcp",
    "git",
    "httpx2",
    "PIL",
    "pypdf",
    "pathspec",
)


def test_the_list_of_tools_loads_no_heavy_module() -> None:
    code = f"""
import sys
from retinue.tools.registry.builtin import builtin_tools
for tool in builtin_tools():
    tool.prompt(), tool.json_schema()
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
