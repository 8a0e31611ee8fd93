"""What a server says without being asked: diagnostics, how its work goes on, and questions of its own. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.lsp import protocol
from retinue.tools.lsp.answers import published_in
from retinue.tools.lsp.settings import section_of
from retinue.tools.lsp.uris import path_of, uri_of

_MOST_FILES = 5_000


class News:
    """`at_work` holds the tokens of work that the server has begun and not ended."""

    def __init__(self, folder: Path, settings: JsonValue) -> None:
        self._folder = folder
        self._settings = settings
        self._published: dict[Path, tuple[int, protocol.Published]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self.at_work: set[str] = set()
        self.dynamic: set[str] = set()

    # --- taken by the connection ---

    def heard(self, method: str, params: JsonValue) -> None:
        match method, params:
            case "textDocument/publishDiagnostics", _:
                self._take_diagnostics(params)
            case "$/progress", {"token": token, "value": {"kind": "begin"}}:
                self.at_work.add(str(token))
            case "$/progress", {"token": token, "value": {"kind": "end"}}:
                self.at_work.discard(str(token))
                self.wake()
            case _:
                return

    def answer(self, method: str, params: JsonValue) -> JsonValue:
        match method, params:
            case "workspace/configuration", {"items": [*items]}:
                return [self._configuration(item) for item in items]
            case "workspace/workspaceFolders", _:
                return [{"uri": uri_of(self._folder), "name": self._folder.name}]
            case "workspace/applyEdit", _:
                return {"applied": False, "failureReason": "only the agent's own tools change files"}
            case "client/registerCapability", {"registrations": [*registrations]}:
                self.dynamic |= {str(each.get("method")) for each in registrations if isinstance(each, dict)}
                self.wake()
                return None
            case (
                (
                    "client/unregisterCapability"
                    | "window/workDoneProgress/create"
                    | "window/showMessageRequest"
                    | "workspace/diagnostic/refresh"
                    | "workspace/semanticTokens/refresh"
                    | "workspace/inlayHint/refresh"
                    | "workspace/codeLens/refresh"
                ),
                _,
            ):
                return None
            case _:
                raise LookupError(method)

    # --- asked by the session ---

    def mark(self) -> int:
        """What is published from now on has a higher number."""
        return self._count

    def published(self, file: Path, after: int = -1) -> protocol.Published | None:
        number, found = self._published.get(file, (-1, None))
        return found if number > after else None

    def wake(self) -> None:
        """Whoever waits looks again at what is true."""
        self._changed.set()

    async def until(self, true: Callable[[], bool], within_s: float) -> bool:
        """Wait for news that make it true."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not true():
                    self._changed.clear()
                    await self._changed.wait()
        return true()

    async def settled(self, file: Path, quiet_s: float, within_s: float) -> None:
        """Wait until nothing was published for this file for a while: servers publish in several steps."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                seen = self._published.get(file, (-1, None))[0]
                while await self.until(lambda last=seen: self.published(file, last) is not None, quiet_s):
                    seen = self._published[file][0]

    def _take_diagnostics(self, params: JsonValue) -> None:
        try:
            found = published_in(params)
        except ToolError:
            return
        path = path_of(found.uri)
        if path is None or (path not in self._published and len(self._published) >= _MOST_FILES):
            return
        self._count += 1
        self._published[path] = (self._count, found)
        self.wake()

    def _configuration(self, item: JsonValue) -> JsonValue:
        section = item.get("section") if isinstance(item, dict) else None
        return section_of(self._settings, section if isinstance(section, str) else "")
