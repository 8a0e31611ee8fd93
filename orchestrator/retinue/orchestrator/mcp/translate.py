"""From the client library's values to ours. Nothing of the library goes any further. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from retinue.orchestrator.mcp.servers import StdioServer
from retinue.tools.mcp.ports import McpAnswer, McpBlock, McpResource, McpToolFacts

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, Resource, TextResourceContents, Tool


def facts_of(server: StdioServer, tool: Tool) -> McpToolFacts:
    """Hints that are not given stay unknown: who reads them is cautious."""
    hints = tool.annotations
    meta: Mapping[str, object] = tool.meta or {}
    chars, hint = meta.get("anthropic/maxResultSizeChars"), meta.get("anthropic/searchHint")
    return McpToolFacts(
        server=server.name,
        name=tool.name,
        title=tool.title or (hints.title if hints else None) or "",
        description=tool.description or "",
        input_schema=cast("dict[str, JsonValue]", tool.input_schema),
        read_only=hints.read_only_hint if hints else None,
        destructive=hints.destructive_hint if hints else None,
        search_hint=hint if isinstance(hint, str) else "",
        always_load=server.always_load or meta.get("anthropic/alwaysLoad") is True,
        asks_a_person=meta.get("anthropic/requiresUserInteraction") is True,
        max_chars=chars if isinstance(chars, int) and not isinstance(chars, bool) and chars > 0 else None,
        timeout_s=server.timeout_s,
    )


def answer_of(result: CallToolResult) -> McpAnswer:
    """Structured content stands in for an answer without blocks: it says the same, as a rule."""
    blocks = tuple(_block(block) for block in result.content)
    if not blocks and result.structured_content is not None:
        import json

        blocks = (McpBlock(kind="text", text=json.dumps(result.structured_content, ensure_ascii=False)),)
    return McpAnswer(blocks=blocks, is_error=bool(result.is_error))


def contents_of(contents: Iterable[TextResourceContents | BlobResourceContents]) -> tuple[McpBlock, ...]:
    return tuple(_contents(each) for each in contents)


def resource_of(server: str, resource: Resource) -> McpResource:
    return McpResource(
        server=server,
        uri=str(resource.uri),
        name=resource.title or resource.name,
        mime_type=resource.mime_type or "",
        description=resource.description or "",
    )


def _block(block: ContentBlock) -> McpBlock:
    match block.type:
        case "text":
            return McpBlock(kind="text", text=block.text)
        case "image":
            return McpBlock(kind="image", data=block.data, media_type=block.mime_type)
        case "audio":
            return McpBlock(kind="audio", data=block.data, media_type=block.mime_type)
        case "resource_link":
            return McpBlock(kind="link", uri=str(block.uri), name=block.name, media_type=block.mime_type or "")
        case "resource":
            return _contents(block.resource)


def _contents(contents: TextResourceContents | BlobResourceContents) -> McpBlock:
    text = getattr(contents, "text", None)
    blob = getattr(contents, "blob", None)
    return McpBlock(
        kind="resource",
        text=text if isinstance(text, str) else "",
        data=blob if isinstance(blob, str) else "",
        media_type=contents.mime_type or "",
        uri=str(contents.uri),
    )
