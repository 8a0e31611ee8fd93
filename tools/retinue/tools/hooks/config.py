"""The section `hooks` of a settings file or of a definition's front matter, and what it comes to. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from retinue.tools.errors import SpecError
from retinue.tools.hooks.events import BY_NAME, EVENTS, POWERS, TOOL_EVENTS, Event, deadline_of
from retinue.tools.hooks.match import matcher_of
from retinue.tools.permissions.rules import parse_rule

Source = Literal["user", "project", "local", "flag", "policy", "definition", "skill"]

_FOREIGN = frozenset(("mcp_tool", "agent"))
_KIND_SHOWN = ("command", "http", "prompt", "python")


class _Handler(BaseModel):
    """Keys that are not ours are let be: a file may be written for newer systems, too.

    condition  a permission rule (`if`): the hook runs only for calls that fit it
    timeout    seconds
    once       of a skill's hook: no second time in one session
    """

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    condition: str | None = Field(default=None, alias="if")
    timeout: float | None = Field(default=None, gt=0)
    status_message: str = ""
    once: bool = False


class CommandHook(_Handler):
    """`args`: the command is a program that gets these, without a shell. `async`: nobody waits for it."""

    type: Literal["command"]
    command: str = Field(min_length=1)
    args: tuple[str, ...] | None = None
    runs_beside: bool = Field(default=False, alias="async")
    async_rewake: bool = False
    shell: Literal["bash", "powershell"] = "bash"


class HttpHook(_Handler):
    """`$NAME` in headers stands for a variable of the tools' environment, if `allowed_env_vars` names it."""

    type: Literal["http"]
    url: str = Field(pattern=r"^https?://")
    headers: dict[str, str] = {}
    allowed_env_vars: tuple[str, ...] = ()


class PromptHook(_Handler):
    """A question to a small model, with the event in the place of `$ARGUMENTS`."""

    type: Literal["prompt"]
    prompt: str = Field(min_length=1)
    model: str | None = None
    continue_on_block: bool = False


class PythonHook(_Handler):
    """`module:function`, or the name of an entry point of the group `retinue.hooks`."""

    type: Literal["python"]
    call: str = Field(min_length=1)


Handler = CommandHook | HttpHook | PromptHook | PythonHook
_HANDLER: TypeAdapter[Handler] = TypeAdapter(Annotated[Handler, Field(discriminator="type")])


@dataclass(frozen=True, slots=True)
class Registered:
    """One hook where it is asked. `name` is what people and the ledger see of it: never its whole command."""

    event: Event
    matcher: str
    handler: Handler
    source: Source = "user"
    file: str = ""

    @property
    def deadline_s(self) -> float:
        return self.handler.timeout or deadline_of(self.event, self.handler.type)

    @property
    def name(self) -> str:
        return f"{self.event} hook {_label(self.handler)} ({self.source})"


@dataclass(frozen=True, slots=True)
class HookSettings:
    """`remarks` name what stands in the file and is not run, each with its place."""

    hooks: tuple[Registered, ...] = ()
    remarks: tuple[str, ...] = ()


def parse_hooks(events: Mapping[str, JsonValue], where: str, source: Source = "user") -> HookSettings:
    """SpecError, which names the place in the file, for what is no hook."""
    hooks: list[Registered] = []
    remarks: list[str] = []
    for name, groups in events.items():
        event = BY_NAME.get(name)
        if event is None:
            close = difflib.get_close_matches(name, EVENTS, 1, cutoff=0.8)
            hint = f"; did you mean {close[0]}?" if close else ""
            remarks.append(f"{where}: hooks.{name}: there is no such event here, its hooks are never run{hint}")
            continue
        for place, matcher, raw in _entries(groups, f"{where}: hooks.{name}"):
            remark = _unsupported(raw, event, source)
            if remark:
                remarks.append(f"{place}: {remark}")
                continue
            hooks.append(Registered(event, matcher, _handler(raw, place), source, where))
    return HookSettings(tuple(hooks), tuple(remarks))


def for_definition(settings: HookSettings) -> HookSettings:
    """Of a definition that works as a sub-agent: what stands under `Stop` is for the end of the sub-agent."""
    moved = (
        Registered("SubagentStop", "", each.handler, each.source, each.file) if each.event == "Stop" else each
        for each in settings.hooks
    )
    return HookSettings(tuple(moved), settings.remarks)


def _entries(groups: JsonValue, where: str) -> Iterable[tuple[str, str, dict[str, JsonValue]]]:
    """Every handler with its place and its matcher."""
    if not isinstance(groups, list):
        raise SpecError(f'{where}: write a list of {{"matcher": …, "hooks": […]}}')
    for number, group in enumerate(groups):
        place = f"{where}[{number}]"
        handlers = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(group, dict) or not isinstance(handlers, list):
            raise SpecError(f'{place}: write {{"matcher": …, "hooks": […]}}')
        matcher = group.get("matcher", "")
        if not isinstance(matcher, str):
            raise SpecError(f"{place}.matcher: write a text")
        try:
            matcher_of(matcher)
        except re.error as error:
            raise SpecError(f"{place}.matcher: {matcher!r} is no regular expression: {error}") from None
        for index, raw in enumerate(handlers):
            if not isinstance(raw, dict):
                raise SpecError(f'{place}.hooks[{index}]: write {{"type": "command", "command": …}}')
            yield f"{place}.hooks[{index}]", matcher, raw


def _unsupported(raw: Mapping[str, JsonValue], event: Event, source: Source) -> str:
    """Why a hook that may be well written is not run here; empty when it is."""
    kind = raw.get("type")
    if kind in _FOREIGN:
        return f"hooks of the type {kind} are not supported; use one of: {', '.join(_KIND_SHOWN)}"
    if kind == "prompt" and not POWERS[event].asks_models:
        return f"a hook of the type prompt is not asked at {event}"
    if kind == "http" and event == "SessionStart":
        return "only commands and Python are run at SessionStart"
    if kind == "python" and source != "user":
        return "a hook of the type python counts only in your own settings"
    if raw.get("shell") == "powershell":
        return "commands for powershell are not supported"
    if raw.get("if") is not None and event not in TOOL_EVENTS:
        return f"`if` is about calls of tools: at {event} such a hook is never run"
    return ""


def _handler(raw: Mapping[str, JsonValue], place: str) -> Handler:
    try:
        handler = _HANDLER.validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"][1:])  # the first says which kind
        raise SpecError(f"{place}{'.' if key else ''}{key}: {first['msg']}") from None
    if handler.condition is not None:
        try:
            parse_rule(handler.condition, "ask")
        except SpecError as error:
            raise SpecError(f"{place}.if: {error}") from None
    return handler


def _label(handler: Handler) -> str:
    """Without arguments, which may be secrets."""
    match handler:
        case CommandHook(command=command):
            words = (word for word in command.split() if "=" not in word)
            return next(words, "command").strip("\"'").rpartition("/")[2] or "command"
        case HttpHook(url=url):
            return url.partition("//")[2].partition("/")[0].rpartition("@")[2]
        case PromptHook():
            return "prompt"
        case PythonHook(call=call):
            return call
