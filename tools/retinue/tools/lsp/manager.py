"""The language servers of one workspace: started at the first question, ended when nobody asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from retinue.tools.errors import ToolError
from retinue.tools.lsp.connection import ServerGone
from retinue.tools.lsp.crashes import Crashes
from retinue.tools.lsp.session import Place, Session, start
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.ports import Confinement, LanguageAnswer, LanguageQuestion
from retinue.tools.shell.reap import TAG


class LanguageServers:
    """Implements `LanguagePort`. `servers` come from trusted settings: their commands are run.

    root   the workspace; each server serves it, or a folder in it
    env    the environment of the agent's tools
    tag    marks the processes, so that what a killed agent left can be found by `reap`
    """

    def __init__(
        self,
        servers: Mapping[str, LanguageServer],
        *,
        root: Path,
        env: Mapping[str, str],
        confinement: Confinement | None = None,
        tag: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = dict(servers)
        self._root = root
        self._env = {**env, TAG: tag} if tag else dict(env)
        self._confinement = confinement
        self._sessions: dict[str, Session] = {}
        self._starting = {name: asyncio.Lock() for name in servers}
        self._crashes = {
            name: Crashes(server.max_restarts if server.restart_on_crash else 0, clock)
            for name, server in servers.items()
        }
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def extensions(self) -> frozenset[str]:
        return frozenset(suffix for server in self._servers.values() for suffix in server.extension_to_language)

    @property
    def running(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, session in self._sessions.items() if not session.gone))

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        """A server that ends while it is asked is started again once, if its settings allow it."""
        name = self._name_for(question.file)
        for again in (True, False):
            session = await self._session(name)
            session.busy += 1
            try:
                return await session.ask(question)
            except ServerGone:
                if not again or not self._servers[name].restart_on_crash:
                    raise ToolError(f"The language server {name} ended: {await session.why_gone()}.") from None
            finally:
                session.busy -= 1
                self._rest(name, session)
        raise AssertionError("the second try returns or raises")

    async def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._closed = True
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.end() for session in sessions), *self._ending)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _name_for(self, file: Path) -> str:
        suffix = file.suffix.lower()
        for name, server in self._servers.items():
            if suffix in server.extension_to_language:
                return name
        known = ", ".join(sorted(self.extensions)) or "no files"
        raise ToolError(f"No language server is configured for {suffix or file.name}; there are servers for {known}.")

    async def _session(self, name: str) -> Session:
        async with self._starting[name]:
            session = self._sessions.get(name)
            if session is not None and not session.gone:
                return session
            crashes = self._crashes[name]
            if session is not None:
                crashes.note(await session.why_gone())
                del self._sessions[name]
                await session.end()
            if crashes.too_many:
                raise ToolError(
                    f"The language server {name} ended {crashes.lately()} times ({crashes.why}) and is not started "
                    "again for now. Use Grep and Read instead."
                )
            config = self._servers[name]
            place = Place(self._folder(name, config), self._env, self._confinement)
            try:
                session = await start(name, config, place)
            except ToolError as error:
                crashes.note(str(error))
                raise
            if self._closed:
                await session.end()
                raise ToolError("The agent is ending: no language server is started any more.")
            self._sessions[name] = session
            return session

    def _folder(self, name: str, config: LanguageServer) -> Path:
        folder = (self._root / (config.workspace_folder or ".")).resolve()
        if not folder.is_relative_to(self._root.resolve()) or not folder.is_dir():
            raise ToolError(f"The workspaceFolder of the language server {name} is no folder of the workspace.")
        return folder

    def _rest(self, name: str, session: Session) -> None:
        """From now on the server is idle, unless somebody asks it meanwhile."""
        if name in self._timers:
            self._timers.pop(name).cancel()
        if not session.busy and self._sessions.get(name) is session:
            idle_s = self._servers[name].idle_timeout / 1000
            self._timers[name] = asyncio.get_running_loop().call_later(idle_s, self._retire, name, session)

    def _retire(self, name: str, session: Session) -> None:
        if session.busy or self._sessions.get(name) is not session:
            return
        del self._sessions[name]
        task = asyncio.get_running_loop().create_task(_quietly(session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _quietly(session: Session) -> None:
    with suppress(ToolError):
        await session.end()
