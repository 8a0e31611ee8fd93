"""From a model's name in a spec to the port that answers for it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, cast, get_args
from urllib.parse import urlsplit

from pydantic import Field, SecretStr

from retinue.agents.boot import ToolLoading
from retinue.agents.model.messages import Wire
from retinue.agents.model.port import ModelPort
from retinue.agents.model.replay import Recording
from retinue.tools.errors import EnvironmentProblem, SpecError

Provider = Literal["anthropic", "script", "replay"]
_OFFICIAL_HOST = "api.anthropic.com"
_KNOWS_REFERENCES = (4, 5)
_VERSION = re.compile(r"-(\d)(?:-(\d{1,2}))?(?=-|\Z)")


class ModelSettings(Wire):
    """How models are reached. Given by who reads the environment and the spec, never read from there here.

    read_timeout_s  how long a stream may be silent before it counts as dropped
    """

    base_url: str | None = None
    api_key: SecretStr | None = None
    auth_token: SecretStr | None = None
    connect_timeout_s: Annotated[float, Field(gt=0)] = 10.0
    read_timeout_s: Annotated[float, Field(gt=0)] = 90.0


def parse_ref(ref: str) -> tuple[Provider, str]:
    """`anthropic:NAME`, `script:FILE` or `replay:RUN`, in its two halves. Raises SpecError."""
    provider, colon, name = ref.partition(":")
    providers = get_args(Provider)
    if provider in providers and name:
        return cast(Provider, provider), name
    if not colon:
        raise SpecError(f"model {ref!r}: write PROVIDER:NAME, as in `anthropic:{ref or 'claude-sonnet-5'}`")
    close = difflib.get_close_matches(provider, providers, n=1)
    hint = f"did you mean {close[0]}? " if close and provider not in providers else ""
    raise SpecError(f"model {ref!r}: {hint}known are {', '.join(f'{known}:…' for known in providers)}")


def tool_loading(ref: str, base_url: str | None = None) -> ToolLoading:
    """What a model's provider can do about tools that the model searches for.

    The Messages API expands references for models from 4.5 on; servers that only speak like it mostly drop them, so
    there the client loads. Scripts and recordings say themselves what they call, and search for nothing.
    """
    provider, name = parse_ref(ref)
    if provider != "anthropic":
        return "all"
    if base_url is not None and urlsplit(base_url).hostname != _OFFICIAL_HOST:
        return "client"
    version = _VERSION.search(name)
    if version is None:
        return "client"
    return "reference" if (int(version[1]), int(version[2] or 0)) >= _KNOWS_REFERENCES else "client"


def check_access(ref: str, settings: ModelSettings) -> None:
    """Raises EnvironmentProblem when the model can only be reached with a key, and there is none."""
    given = (settings.base_url, settings.api_key, settings.auth_token)
    if parse_ref(ref)[0] == "anthropic" and given == (None, None, None):
        raise EnvironmentProblem(
            f"model {ref!r} needs a key: set ANTHROPIC_API_KEY, name a server that speaks the Messages API "
            "(base_url), or use `script:FILE`, which needs neither"
        )


def open_model(
    ref: str,
    settings: ModelSettings,
    *,
    folder: Path | None = None,
    recording: Callable[[str], Recording] | None = None,
) -> ModelPort:
    """The port for `ref`; it serves any number of agents at once.

    `folder` is what a script's relative path starts from, `recording` finds an earlier run by its id. Raises SpecError
    (an unknown name, a bad script) or EnvironmentProblem (no credential). What only one provider needs is imported with
    it, so that nobody pays for another's libraries.
    """
    provider, name = parse_ref(ref)
    match provider:
        case "script":
            from retinue.agents.model.script_file import load_script
            from retinue.agents.model.scripted import ScriptedModel

            return ScriptedModel(load_script((folder or Path()) / name), where=name)
        case "replay":
            from retinue.agents.model.replay import ReplayModel

            if recording is None:
                raise SpecError(f"model {ref!r}: recordings cannot be opened here")
            return ReplayModel(recording(name), where=name)
        case "anthropic":
            from retinue.agents.model.anthropic_client import AnthropicModel

            check_access(ref, settings)
            return AnthropicModel(
                name,
                base_url=settings.base_url,
                api_key=settings.api_key.get_secret_value() if settings.api_key else None,
                auth_token=settings.auth_token.get_secret_value() if settings.auth_token else None,
                connect_timeout_s=settings.connect_timeout_s,
                read_timeout_s=settings.read_timeout_s,
            )
