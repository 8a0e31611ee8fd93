"""One running language server: from its start to its end, and the questions that it is asked between."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.files.codec import decode
from retinue.tools.lsp import answers, process, watch
from retinue.tools.lsp.connection import CONTENT_MODIFIED, Connection, ServerGone, ServerRefused
from retinue.tools.lsp.documents import DID_OPEN, MAX_DOCUMENT_BYTES, Documents
from retinue.tools.lsp.news import News
from retinue.tools.lsp.positions import Encoding, to_units
from retinue.tools.lsp.protocol import CLIENT_CAPABILITIES
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.lsp.uris import uri_of
from retinue.tools.ports import Confinement, LanguageAnswer, LanguageEntry, LanguageQuestion
from retinue.tools.threads import in_thread

T = TypeVar("T")

CAPABILITIES = {
    "goToDefinition": "definitionProvider",
    "findReferences": "referencesProvider",
    "hover": "hoverProvider",
    "documentSymbol": "documentSymbolProvider",
    "workspaceSymbol": "workspaceSymbolProvider",
    "goToImplementation": "implementationProvider",
    "prepareCallHierarchy": "callHierarchyProvider",
    "incomingCalls": "callHierarchyProvider",
    "outgoingCalls": "callHierarchyProvider",
}
_LOCATIONS = {
    "goToDefinition": "textDocument/definition",
    "findReferences": "textDocument/references",
    "goToImplementation": "textDocument/implementation",
}
_BUSY_S = 20.0
_FIRST_NEWS_S = 1.0
_MOST_CHANGED = 20
_QUIET_S = 1.0
_REPUBLISH_S = 5.0
_PUBLISH_S = 15.0
_RETRY_S = (0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs: the folder that it serves, its environment, the sandbox that it is in."""

    folder: Path
    env: Mapping[str, str]
    confinement: Confinement | None = None


class Session:
    """Made by `start`. Questions may be asked side by side."""

    def __init__(self, name: str, config: LanguageServer, place: Place, running: process.ServerProcess) -> None:
        self.name = name
        self.busy = 0
        self._config = config
        self._folder = place.folder
        self._process = running
        self._news = News(place.folder, config.settings)
        self._connection = Connection(
            running.reader, running.writer, answer=self._news.answer, heard=self._news.heard, ended=self._news.wake
        )
        self._documents = Documents(config.extension_to_language)
        self._seen = watch.Look()
        self._sync = asyncio.Lock()
        self._capabilities: Mapping[str, JsonValue] = {}
        self._encoding: Encoding = "utf-16"
        self._fresh = True
        self._telling: set[asyncio.Task[Any]] = set()

    @property
    def gone(self) -> bool:
        return self._connection.closed.is_set()

    async def why_gone(self) -> str:
        await self._process.ended(1.0)
        complaint = self._process.complaint
        return f"{self._connection.why_closed}: {complaint}" if complaint else self._connection.why_closed

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        """ToolError when the server cannot do it or does not answer; ServerGone when it ended meanwhile."""
        self._require(question.operation)
        mark = self._news.mark()
        told, lines = await self._undisturbed(self._catch_up(question.file))
        note = "" if await self._ready() else "The server is still reading the workspace: the answer may be incomplete."
        found = await self._answered(question, lines, mark if told else -1)
        if not self._seen.complete:
            note = f"{note} The workspace is so large that not every changed file was looked at.".strip()
        return found.model_copy(update={"note": " ".join(part for part in (found.note, note) if part)})

    async def end(self) -> None:
        """Ask it to end, then end it, with all that it started."""
        limit = self._config.shutdown_timeout / 1000
        try:
            with suppress(ToolError):
                await self._connection.request("shutdown", None, limit)
                await self._connection.notify("exit", None)
                await self._process.ended(limit)
        finally:
            await self._connection.close()
            await self._process.end()

    # --- its start ---

    async def initialize(self) -> None:
        folder: JsonValue = {"uri": uri_of(self._folder), "name": self._folder.name}
        found = await self._connection.request(
            "initialize",
            {
                "processId": None,
                "clientInfo": {"name": "retinue"},
                "rootPath": str(self._folder),
                "rootUri": uri_of(self._folder),
                "workspaceFolders": [folder],
                "capabilities": CLIENT_CAPABILITIES,
                "initializationOptions": self._config.initialization_options,
            },
            self._config.startup_timeout / 1000,
        )
        capabilities = found.get("capabilities") if isinstance(found, dict) else None
        if not isinstance(capabilities, dict):
            raise ToolError("The language server did not say what it can do.")
        self._capabilities = capabilities
        match capabilities.get("positionEncoding"):
            case "utf-8" | "utf-16" | "utf-32" as encoding:
                self._encoding = encoding
            case _:
                self._encoding = "utf-16"
        self._seen = await in_thread(watch.look, self._folder, self._suffixes)
        await self._connection.notify("initialized", {})
        if self._config.settings is not None:
            await self._connection.notify("workspace/didChangeConfiguration", {"settings": self._config.settings})

    @property
    def _suffixes(self) -> frozenset[str]:
        return frozenset(self._config.extension_to_language)

    # --- what changed on disk ---

    async def _undisturbed(self, work: Coroutine[None, None, T]) -> T:
        """Cancellation does not reach it: half of what changed would be taken for told."""
        task = asyncio.get_running_loop().create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._told)
        return await asyncio.shield(task)

    def _told(self, task: asyncio.Task[Any]) -> None:
        self._telling.discard(task)
        if not task.cancelled():
            task.exception()

    async def _catch_up(self, file: Path) -> tuple[bool, list[str]]:
        """Tell the server what is new on disk. Whether anything was that it has an opinion of, and the file's lines."""
        async with self._sync:
            seen = await in_thread(watch.look, self._folder, self._suffixes)
            events = watch.changes(self._seen, seen)
            self._seen = seen
            changed = [Path(path) for path, kind in events if kind != watch.DELETED and self._speaks(path)]
            news = await in_thread(self._documents.catch_up, file, changed[:_MOST_CHANGED])
            # A server that reads closed files from disk must hear that they changed before they are opened: from then
            # on it passes over what is said of the disk.
            opened = [each for each in news if each[0] == DID_OPEN]
            for method, params in (each for each in news if each[0] != DID_OPEN):
                await self._connection.notify(method, params)
            if events:
                changes: list[JsonValue] = [{"uri": uri_of(Path(path)), "type": kind} for path, kind in events]
                await self._connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
            for method, params in opened:
                await self._connection.notify(method, params)
            told = bool(news) or any(self._speaks(path) for path, _ in events)
            return told, self._documents.lines(file)

    def _speaks(self, path: str) -> bool:
        return os.path.splitext(path)[1].lower() in self._config.extension_to_language

    async def _ready(self) -> bool:
        """Wait while the server says that it is at work; one that was just started may take a moment to say so."""
        if self._fresh:
            self._fresh = False
            await self._news.until(lambda: bool(self._news.at_work or self._news.mark() or self.gone), _FIRST_NEWS_S)
        return await self._news.until(lambda: not self._news.at_work or self.gone, _BUSY_S)

    # --- questions ---

    def _require(self, operation: str) -> None:
        needed = CAPABILITIES.get(operation)
        if needed and not self._capabilities.get(needed):
            raise ToolError(f"The language server {self.name} has no {operation}.")

    async def _answered(self, question: LanguageQuestion, lines: list[str], mark: int) -> LanguageAnswer:
        reader = answers.Reader(self._encoding, _Lines().line)
        uri = uri_of(question.file)
        match question.operation:
            case "goToDefinition" | "findReferences" | "goToImplementation" as operation:
                params = self._at(question, lines)
                if operation == "findReferences":
                    params["context"] = {"includeDeclaration": True}
                return self._of(reader.locations(await self._request(_LOCATIONS[operation], params)))
            case "hover":
                text = answers.hover_text(await self._request("textDocument/hover", self._at(question, lines)))
                return LanguageAnswer(server=self.name, text=text)
            case "documentSymbol":
                found = await self._request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
                return self._of(reader.symbols(found, uri))
            case "workspaceSymbol":
                found = await self._request("workspace/symbol", {"query": question.query})
                return self._of(reader.symbols(found, uri))
            case "prepareCallHierarchy" | "incomingCalls" | "outgoingCalls":
                return await self._calls(question, lines, reader)
            case "diagnostics":
                return await self._diagnostics(question.file, reader, mark)

    async def _calls(self, question: LanguageQuestion, lines: list[str], reader: answers.Reader) -> LanguageAnswer:
        found = await self._request("textDocument/prepareCallHierarchy", self._at(question, lines))
        if question.operation == "prepareCallHierarchy":
            return self._of(reader.items(found))
        incoming = question.operation == "incomingCalls"
        entries: list[LanguageEntry] = []
        for item in answers.items_in(found):
            calls = await self._request(f"callHierarchy/{question.operation}", {"item": item})
            entries += reader.callers(calls) if incoming else reader.callees(calls)
        return self._of(tuple(entries))

    async def _diagnostics(self, file: Path, reader: answers.Reader, mark: int) -> LanguageAnswer:
        """Asked for where the server can be asked, else as it published them after it saw the newest text."""
        uri = uri_of(file)
        limit = min(_PUBLISH_S, self._config.request_timeout / 1000)
        first = self._news.published(file) is None
        came = await self._news.until(
            lambda: self._is_asked or self.gone or self._news.published(file, mark) is not None,
            limit if first else min(limit, _REPUBLISH_S),
        )
        if self._is_asked:
            found = await self._request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
            return self._of(reader.diagnostics(answers.report_of(found), uri))
        if self.gone:
            raise ServerGone(self._connection.why_closed)
        await self._news.settled(file, _QUIET_S, limit)
        published = self._news.published(file)
        if published is None:
            return LanguageAnswer(server=self.name, note=f"The server published nothing about the file in {limit:g} s.")
        note = "" if came or mark < 0 else "The server published nothing new since files changed."
        return self._of(reader.diagnostics(published.diagnostics, uri)).model_copy(update={"note": note})

    @property
    def _is_asked(self) -> bool:
        """Whether it gives diagnostics on request. Some servers say so only a moment after their start."""
        return bool(self._capabilities.get("diagnosticProvider")) or "textDocument/diagnostic" in self._news.dynamic

    async def _request(self, method: str, params: JsonValue) -> JsonValue:
        for pause in (*_RETRY_S, None):
            try:
                return await self._connection.request(method, params, self._config.request_timeout / 1000)
            except ServerRefused as error:
                if error.code != CONTENT_MODIFIED or pause is None:
                    raise ToolError(f"The language server {self.name} refused: {error}.") from None
                await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _of(self, entries: tuple[LanguageEntry, ...]) -> LanguageAnswer:
        return LanguageAnswer(server=self.name, entries=entries)

    def _at(self, question: LanguageQuestion, lines: list[str]) -> dict[str, JsonValue]:
        if question.line > len(lines):
            raise ToolError(f"{question.file} has only {len(lines)} lines.")
        line = lines[question.line - 1]
        units = to_units(line, question.character - 1, self._encoding)
        return {
            "textDocument": {"uri": uri_of(question.file)},
            "position": {"line": question.line - 1, "character": units},
        }


async def start(name: str, config: LanguageServer, place: Place) -> Session:
    """ToolError when it cannot be started; nothing of it is left then."""
    env = {**place.env, **config.env}
    running = await process.start(
        (config.command, *config.args), cwd=place.folder, env=env, confinement=place.confinement
    )
    session = Session(name, config, place, running)
    try:
        await session.initialize()
    except BaseException as error:
        why = await session.why_gone() if isinstance(error, ServerGone) else ""
        await session.end()
        if why:
            raise ToolError(f"The language server {name} ended at its start: {why}.") from None
        raise
    return session


class _Lines:
    """Lines of files that an answer leads to, each file read once."""

    def __init__(self) -> None:
        self._files: dict[Path, list[str]] = {}

    def line(self, file: Path, number: int) -> str:
        if file not in self._files:
            self._files[file] = _lines_of(file)
        lines = self._files[file]
        return lines[number] if 0 <= number < len(lines) else ""


def _lines_of(file: Path) -> list[str]:
    try:
        if not file.is_file() or os.stat(file).st_size > MAX_DOCUMENT_BYTES:
            return []
        return decode(file.read_bytes()).visible().split("\n")
    except OSError:
        return []
