"""The parts of the protocol's answers that are read here. Pure; what else an answer holds is passed over."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class Position(Part):
    line: int
    character: int


class Range(Part):
    start: Position
    end: Position


class Location(Part):
    uri: str
    range: Range


class LocationLink(Part):
    target_uri: str
    target_selection_range: Range


class DocumentSymbol(Part):
    name: str
    kind: int
    detail: str | None = None
    selection_range: Range
    children: tuple[DocumentSymbol, ...] | None = None


class UriOnly(Part):
    uri: str
    range: Range | None = None


class SymbolInformation(Part):
    name: str
    kind: int
    container_name: str | None = None
    location: UriOnly


class CallHierarchyItem(Part):
    name: str
    kind: int
    detail: str | None = None
    uri: str
    selection_range: Range


class IncomingCall(Part):
    from_: CallHierarchyItem
    from_ranges: tuple[Range, ...] = ()

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=lambda name: to_camel(name.rstrip("_")), validate_by_alias=True
    )


class OutgoingCall(Part):
    to: CallHierarchyItem


class Diagnostic(Part):
    range: Range
    message: str
    severity: int = 1
    code: int | str | None = None
    source: str | None = None


class Published(Part):
    uri: str
    version: int | None = None
    diagnostics: tuple[Diagnostic, ...]


class Report(Part):
    """A pulled report; `items` are missing when nothing changed, which is never asked for here."""

    items: tuple[Diagnostic, ...] = ()


class Marked(Part):
    value: str
    language: str = ""


class Hover(Part):
    contents: Marked | str | tuple[Marked | str, ...]


Locations = tuple[Location | LocationLink, ...]
Symbols = tuple[DocumentSymbol | SymbolInformation, ...]

SYMBOL_KINDS = (
    "?",
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "member",
    "struct",
    "event",
    "operator",
    "parameter",
)
SEVERITIES = ("?", "error", "warning", "information", "hint")

CLIENT_CAPABILITIES: JsonValue = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "applyEdit": False,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "symbol": {},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "callHierarchy": {},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    },
}
