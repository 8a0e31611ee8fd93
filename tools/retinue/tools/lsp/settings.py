"""How a language server is configured. Pure: the values come from trusted settings, for they execute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator
from pydantic.alias_generators import to_camel


class LanguageServer(BaseModel):
    """One entry of `.lsp.json`, in its spelling. Times are in milliseconds.

    extension_to_language   `{".ts": "typescript"}`: which files it is for, and what it calls their language
    workspace_folder        the folder that it serves, relative to the workspace; the workspace itself when left out
    settings                what it is given when it asks for its configuration
    restart_on_crash        start it again at the next question, at most `max_restarts` times in ten minutes
    idle_timeout            it is ended when it was not asked for so long
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    extension_to_language: dict[str, str] = Field(min_length=1)
    transport: Literal["stdio"] = "stdio"
    env: dict[str, str] = {}
    initialization_options: JsonValue = None
    settings: JsonValue = None
    workspace_folder: str | None = None
    startup_timeout: int = Field(60_000, gt=0)
    shutdown_timeout: int = Field(5_000, gt=0)
    request_timeout: int = Field(60_000, gt=0)
    idle_timeout: int = Field(600_000, gt=0)
    restart_on_crash: bool = True
    max_restarts: int = Field(3, ge=0)

    @field_validator("extension_to_language")
    @classmethod
    def _with_dots(cls, value: dict[str, str]) -> dict[str, str]:
        if bad := [suffix for suffix in value if not suffix.startswith(".") or len(suffix) < 2]:
            raise ValueError(f"{bad[0]!r} is no suffix of files: write it with its dot, as in .py")
        return {suffix.lower(): language for suffix, language in value.items()}


def section_of(settings: JsonValue, section: str) -> JsonValue:
    """The part of a server's settings that it asks for by a name with dots; None when there is none."""
    found = settings
    for part in section.split(".") if section else ():
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
