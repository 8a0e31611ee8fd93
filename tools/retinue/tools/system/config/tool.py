"""Config: what an agent's settings are, and what they shall be from now on."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    AskFirst,
    NameSubject,
    OnProgress,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.system.config.constants import NO_CHOICE, ONLY_READ, UNKNOWN
from retinue.tools.system.ports import Setting
from retinue.tools.text import one_line


class ConfigInput(ToolInput):
    setting: str = Field("", description="Its name, as in permissions.defaultMode; all settings when not given")
    value: str | bool | int | None = Field(None, description="What it shall be; only shown when not given")


class ConfigOutput(ToolData):
    """`previous` is what it was before it was set; None when it was only shown."""

    settings: tuple[Setting, ...]
    previous: str | None = None


class Config(Tool[ConfigInput, ConfigOutput]):
    name = "Config"
    group = "system"
    needs = ("config",)
    search_hint = "settings preferences mode"
    should_defer = True
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "Show a setting of this session, or change it"

    def traits(self, args: ConfigInput) -> Traits:
        return Traits(read_only=args.value is None, concurrency_safe=args.value is None)

    def subject(self, args: ConfigInput, ctx: ToolContext) -> Subject:
        return NameSubject(args.setting)

    def title(self, args: ConfigInput) -> str:
        name = one_line(args.setting, 60) or "all settings"
        return f"Setting {name}" if args.value is None else f"Set {name} to {one_line(_text(args.value), 60)}"

    async def validate_input(self, args: ConfigInput, ctx: ToolContext) -> Validation:
        if ctx.config is None:
            return None
        known = {setting.name: setting for setting in ctx.config.settings()}
        if args.value is None and not args.setting:
            return None
        setting = known.get(args.setting)
        if setting is None:
            return Refused(f"There is no setting {args.setting!r}. There are: {', '.join(sorted(known))}.", UNKNOWN)
        if args.value is None:
            return None
        if not setting.choices:
            return Refused(f"{setting.name} can only be read.", ONLY_READ)
        if _text(args.value) not in setting.choices:
            return Refused(f"{setting.name} is one of {', '.join(setting.choices)}.", NO_CHOICE)
        if setting.name.startswith("permissions."):
            return AskFirst("it changes what this agent may do")
        return None

    async def call(self, args: ConfigInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[ConfigOutput]:
        if ctx.config is None:
            raise ToolError("This agent has no settings of its own.")
        before = ctx.config.settings()
        if args.value is None:
            return ToolResult(ConfigOutput(settings=tuple(s for s in before if args.setting in ("", s.name))))
        previous = next(setting.value for setting in before if setting.name == args.setting)
        await ctx.config.set(ctx.key, args.setting, _text(args.value))
        now = tuple(setting for setting in ctx.config.settings() if setting.name == args.setting)
        return ToolResult(ConfigOutput(settings=now, previous=previous))

    def to_content(self, data: ConfigOutput) -> str:
        if data.previous is not None:
            (setting,) = data.settings
            return f"{setting.name} is {setting.value} now; it was {data.previous}."
        return "\n".join(_line(setting) for setting in data.settings)


def _line(setting: Setting) -> str:
    can = f"; one of {', '.join(setting.choices)}" if setting.choices else "; can only be read"
    return f"{setting.name} = {setting.value} ({setting.about}{can})"


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
