"""What is started for an MCP server: its program in the run's sandbox, behind a guard that ends it with its owner."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

from retinue.orchestrator.mcp.connection import Program
from retinue.orchestrator.mcp.servers import StdioServer
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.confined import Shells
from retinue.orchestrator.sandboxing import policy_of_checks
from retinue.tools.errors import ToolError
from retinue.tools.lsp.process import guarded
from retinue.tools.shell.environment import GitIdentity, tool_environment
from retinue.tools.text import one_line


class McpPrograms:
    """For the servers of one run, in the process that holds their connections. Each works in a folder of its own."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._shells = Shells(files, "mcp")

    async def of(self, server: StdioServer) -> Program:
        """ToolError: there is no such program. EnvironmentProblem: the sandbox cannot be used."""
        files, plan = self._files, self._files.plan
        if plan.sandbox.state == "broken":
            raise ToolError(f"the sandbox cannot start here ({plan.sandbox.why}), and no server runs without it")
        root, repo = await asyncio.to_thread(lambda: (files.dir.root.resolve(), Path(plan.repo).resolve()))
        folder = root / "tmp" / f"mcp-{server.name}"
        await asyncio.to_thread(folder.mkdir, 0o700, parents=True, exist_ok=True)
        env = self._environment(server, folder)
        argv = _argv(server, env)
        policy = policy_of_checks(plan.sandbox, root, repo)
        network = plan.sandbox.team.network if server.network is None else server.network
        confinement = await self._shells.confinement_of(
            replace(policy, writable=(), protected=(), scratch=folder, network=network)
        )
        if confinement is not None:
            argv = await asyncio.to_thread(confinement.wrap, argv)
        return Program(tuple(guarded(argv, os.getpid())), env, folder)

    def _environment(self, server: StdioServer, folder: Path) -> dict[str, str]:
        files = self._files
        env = tool_environment(
            files.private.base,
            home=Path(files.private.base.get("HOME", "/")),
            tmp=folder,
            identity=GitIdentity(server.name, f"{server.name}@{files.plan.run}.retinue.invalid"),
            spec_env={**server.env, **files.private.mcp.get(server.name, {})},
            git_config=files.git_config.resolve(),
        )
        return {**env, "CLAUDE_PROJECT_DIR": files.plan.repo}


def _argv(server: StdioServer, env: dict[str, str]) -> list[str]:
    if "/" in server.command and not server.command.startswith("/"):
        raise ToolError(
            f"its command {one_line(server.command)} is relative: write its name, or its whole path, in the spec"
        )
    program = shutil.which(server.command, path=env.get("PATH", ""))
    if program is None:
        raise ToolError(
            f"there is no program {one_line(server.command)}: install it, or mend mcp_servers.{server.name}"
        )
    return [program, *server.args]
