"""Inside of a network namespace: a port of the loopback that leads to the proxy's socket. Pure."""

from __future__ import annotations

from pathlib import Path

from retinue.tools.shell.sandbox.launch import program


def launcher(proxy: Path) -> list[str]:
    """Runs what follows with the forwarder beside it, and with the variables by which programs find it."""
    return program("forwarder", [str(proxy)])
