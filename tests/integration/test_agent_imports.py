"""What a process of an agent loads: not the libraries that it never uses."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("ray", "anthropic", "mcp", "git", "libtmux", "rich", "typer", "httpx2", "jsonschema", "ruamel", "tree_sitter")


def test_an_agents_process_loads_no_client_and_no_terminal() -> None:
    code = f"import sys, retinue.agents.assemble; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
