"""The spec's part about language servers: programs that know the code of one language."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import BeforeValidator, JsonValue, WithJsonSchema

from retinue.orchestrator.spec.fields import Duration, EnvName, EnvValue, Switch, Texts, wrong
from retinue.orchestrator.spec.part import SpecPart
from retinue.tools.lsp.settings import LanguageServer


def _program(value: object) -> str:
    expected = "a program's name, or its whole path"
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise wrong(expected)
    if " " in value.strip() and not value.startswith("/"):
        raise wrong(expected, "write what follows it under args")
    if "/" in value and not value.startswith("/"):
        raise wrong(expected, "a relative path would be whatever an agent puts there")
    return value


def _suffixes(value: object) -> object:
    expected = "a mapping of suffixes to languages, as in {.py: python}"
    if not isinstance(value, dict) or not value:
        raise wrong(expected)
    for suffix, language in cast("dict[object, object]", value).items():
        if not isinstance(suffix, str) or not suffix.startswith(".") or len(suffix) < 2 or "/" in suffix:
            raise wrong(expected, f"write {str(suffix)[:40]!r} with its dot")
        if not isinstance(language, str) or not language.strip():
            raise wrong(expected, f"say what the server calls the language of {suffix[:40]}")
    return {suffix.lower(): language for suffix, language in cast("dict[str, str]", value).items()}


def _folder(value: object) -> str:
    expected = "a folder of the workspace, as in packages/web"
    if not isinstance(value, str) or not value.strip() or value.startswith(("/", "~")) or ".." in value.split("/"):
        raise wrong(expected)
    return value


def _times(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdecimal() or int(value) > 100:
        raise wrong("a whole number from 0 to 100")
    return int(value)


Program = Annotated[str, BeforeValidator(_program), WithJsonSchema({"type": "string", "minLength": 1})]
Suffixes = Annotated[
    dict[str, str],
    BeforeValidator(_suffixes),
    WithJsonSchema(
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": r"^\.[^/]+$"},
            "additionalProperties": {"type": "string", "minLength": 1},
        }
    ),
]
Anything = Annotated[JsonValue, WithJsonSchema({})]
Folder = Annotated[str, BeforeValidator(_folder), WithJsonSchema({"type": "string", "minLength": 1})]
Times = Annotated[int, BeforeValidator(_times), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 100})]


class LanguageSpec(SpecPart):
    """One language server. It runs in the agent's sandbox, from the first question about a file of its own on."""

    command: Program
    """The program: a name on the tools' search path, or a whole path."""

    args: Texts = ()
    """Its arguments, as in `[--stdio]`."""

    extension_to_language: Suffixes
    """Which files it is for, and what it calls their language, as in `{.py: python}`."""

    env: dict[EnvName, EnvValue] = {}
    """Environment variables, besides those of the agent's tools."""

    initialization_options: Anything = None
    """What it is given at its start."""

    settings: Anything = None
    """What it is given when it asks for its configuration."""

    workspace_folder: Folder | None = None
    """A folder of the workspace that it serves. The whole workspace when not given."""

    startup_timeout: Duration = 60.0
    """How long it may take to start."""

    request_timeout: Duration = 60.0
    """How long it may take to answer."""

    shutdown_timeout: Duration = 5.0
    """How long it may take to end by itself."""

    idle_timeout: Duration = 600.0
    """After so long without a question it is ended."""

    restart_on_crash: Switch = True
    """Whether it is started again when it ended by itself."""

    max_restarts: Times = 3
    """How often, in ten minutes."""

    def server(self) -> LanguageServer:
        """As the tools take it, with times in milliseconds."""
        times = ("startup_timeout", "request_timeout", "shutdown_timeout", "idle_timeout")
        values: dict[str, object] = self.model_dump(exclude=set(times))
        values.update({name: max(1, round(1000 * cast("float", getattr(self, name)))) for name in times})
        return LanguageServer.model_validate(values)
