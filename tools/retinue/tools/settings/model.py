"""What a settings file may say, and what all of them together come to for one run."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.permissions.decide import Mode
from retinue.tools.web.settings import DEFAULT_WEB, WebSettings

Layer = Literal["user", "project", "local", "flag", "policy"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
"""Each overrides those before it."""


class SettingsPart(BaseModel):
    """Keys are written as in `defaultMode`; our own files may also write `default_mode`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class PermissionSettings(SettingsPart):
    """`additional_directories`: folders beside the workspace that agents may work in."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    default_mode: Mode | None = None
    additional_directories: tuple[str, ...] = ()
    disable_bypass_permissions_mode: Literal["disable"] | None = None


class ClassifierSettings(SettingsPart):
    """A model that guesses whether you would allow a call. `allow` and `deny` say in your words what you would."""

    enabled: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    deadline_s: float = Field(default=20, gt=0, le=120)


class SettingsFile(SettingsPart):
    """One file. What is None or empty says nothing.

    compatibility   false: files under `.claude` and the like are not read, nor CLAUDE.md and AGENTS.md
    hooks           by event, as in the file
    env             variables of the tools' environment, not of retinue's own
    """

    compatibility: bool | None = None
    permissions: PermissionSettings = PermissionSettings()
    hooks: dict[str, JsonValue] = {}
    disable_all_hooks: bool | None = None
    allow_managed_hooks_only: bool | None = None
    allow_managed_permission_rules_only: bool | None = None
    env: dict[str, str] = {}
    classifier: ClassifierSettings | None = None
    web: WebSettings | None = None
    lsp: dict[str, LanguageServer] = {}


class Carried(BaseModel):
    """Goes with a run, from its launch to every agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SourcedRules(Carried):
    """The rules of one file. `base` is the folder that `/path` in them starts from; None: the workspace."""

    source: Layer
    file: str
    base: str | None = None
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class HookSource(Carried):
    """The hooks of one file, by event, as they stand there."""

    source: Layer
    file: str
    events: dict[str, JsonValue]


class Settings(Carried):
    """What all settings files together come to. Holds no variable's value: those lie with the run's secrets.

    mode              None: no file says
    bypass_refused    a policy does not let any agent work in bypassPermissions
    only_policy       only rules of a policy count
    only_policy_hooks the same for hooks: those of definitions are not run either
    trusted           what the repository brings may execute, grant and route
    notes             instructions for agents that the repository and you keep, as in CLAUDE.md
    """

    trusted: bool = False

    rules: tuple[SourcedRules, ...] = ()
    mode: Mode | None = None
    bypass_refused: bool = False
    only_policy: bool = False
    extra_dirs: tuple[str, ...] = ()
    hooks: tuple[HookSource, ...] = ()
    only_policy_hooks: bool = False
    classifier: ClassifierSettings = ClassifierSettings()
    web: WebSettings = DEFAULT_WEB
    lsp: dict[str, LanguageServer] = {}
    notes: str = ""


NO_SETTINGS = Settings()
