"""Types of single values of a spec. Each refuses with words of its own: what is expected, and an example."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Literal, cast
from urllib.parse import urlsplit

from pydantic import BeforeValidator, GetJsonSchemaHandler, PlainSerializer, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from retinue.orchestrator.spec.vocabulary import DEFINITIONS, PROVIDERS

NAME_PATTERN = r"[a-z][a-z0-9-]{0,39}"
MODEL_USE_PATTERN = f"^({'|'.join(PROVIDERS)}):.+"
TASK_ID_PATTERN = r"[a-z0-9][a-z0-9_-]{0,39}"
NAME_EXPECTED = "a name of lower-case letters, digits and -, at most 40, that starts with a letter"
_NAME = re.compile(NAME_PATTERN + r"\Z")
_TASK_ID = re.compile(TASK_ID_PATTERN + r"\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|h)?\Z")
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_REF_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(/|\Z)|\.\Z|/\Z|\A[-/.]|\A@\Z")
_HOST = re.compile(r"(\*\.)?(?=.)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\Z")
_BASE_REFUSED = re.compile(r"[\x00-\x20\x7f]|\A-|\A\Z")


def wrong(expected: str, remedy: str = "") -> PydanticCustomError:
    """The refusal of a value; what was found is added by whoever knows the document."""
    return PydanticCustomError("expected", "expected {expected}", {"expected": expected, "remedy": remedy})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise wrong("text", "put it in quotes" if isinstance(value, bool | int | float) else "")
    if not value.strip():
        raise wrong("text that is not empty")
    if "\0" in value:
        raise wrong("text without NUL characters")
    if has_surrogates(value):
        raise wrong("text that can be written as UTF-8")
    return value


def has_surrogates(text: str) -> bool:
    """Halves of a character, as from bytes of the command line that are not UTF-8: no file and no socket takes them."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _name(value: object) -> str:
    if not _NAME.match(_text(value)):
        raise wrong(NAME_EXPECTED)
    return str(value)


def _task_id(value: object) -> str:
    if not _TASK_ID.match(_text(value)):
        raise wrong("an id of lower-case letters, digits, - and _, at most 40, as in fix-login")
    return str(value)


def _env_value(value: object) -> str:
    if isinstance(value, str) and not value:
        return value
    return _text(value)


def _env_name(value: object) -> str:
    name = str(value)
    if not _ENV_NAME.match(name):
        raise wrong("the name of an environment variable, as in LOG_LEVEL")
    if name.startswith(("RAY_", "RETINUE_", "TMUX", "GIT_")):
        raise wrong("a variable that the tools may have", "RAY_*, RETINUE_*, TMUX* and GIT_* are set by retinue alone")
    if name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        raise wrong("a variable that the tools may have", "keys of model providers never reach tools")
    return name


def _number(value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise wrong(expected)
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise wrong(expected) from None
    if not math.isfinite(number) or number <= 0:
        raise wrong(expected)
    return number


def _count(value: object) -> int:
    expected = "a whole number above 0"
    number = _number(value, expected)
    if number != int(number) or number > 10**15:
        raise wrong(expected)
    return int(number)


def _replicas(value: object) -> int:
    expected = "a whole number from 1 to 100"
    number = _number(value, expected)
    if number != int(number) or number > 100:
        raise wrong(expected)
    return int(number)


def _usd(value: object) -> float:
    return _number(value, "an amount of US dollars above 0, as in 5 or 0.50")


def _usd_limit(value: object) -> float | None:
    """`none` is a word, not an empty value: nobody lifts the limit by leaving a line half written."""
    return None if value == "none" else _usd(value)


def _usd_written(limit: float | None) -> float | str:
    return "none" if limit is None else limit


def seconds_of(value: object) -> float:
    """`90s`, `10m`, `1h`, `1.5h`, or a number of seconds."""
    expected = "a duration above 0, as in 90s, 10m or 1h"
    if isinstance(value, str):
        found = _DURATION.match(value.strip())
        if found is None:
            raise wrong(expected)
        return _number(found[1], expected) * _UNIT_SECONDS[found[2] or "s"]
    return _number(value, expected)


def _switch(value: object) -> bool:
    """A word like `yes` is text in YAML 1.2, and must not be guessed at where something is switched off."""
    found = {"true": True, "false": False}.get(value) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise wrong("true or false")
    return found


def _network(value: object) -> object:
    if value in ("off", "full"):
        return value
    expected = "off, full, or a list of hosts"
    if not isinstance(value, list | tuple):
        one = isinstance(value, str) and "." in value and _HOST.match(value)
        raise wrong(expected, f"write [{value}] for this host alone" if one else "")
    hosts = cast("list[object] | tuple[object, ...]", value)
    if not hosts:
        raise wrong(expected, "write off for no network at all")
    return tuple(_host(host) for host in hosts)


def _host(value: object) -> str:
    """Of a list: the place of an entry in it is said by naming it."""
    expected = "the names of hosts, as in packages.example.net or *.example.org"
    if isinstance(value, str) and "://" in value:
        raise wrong(expected, "write the host alone, without https://")
    if not isinstance(value, str) or not _HOST.match(value) or len(value) > 253:
        raise wrong(expected, f"{str(value)[:60]!r} is none")
    return value.lower()


def _place(value: object) -> str:
    text = _text(value)
    expected = "a path that starts with / or ~/"
    if not text.startswith(("/", "~/")):
        raise wrong(expected, "your checkout and the agents' worktrees need no entry" if text[:1] == "." else "")
    if ".." in text.split("/"):
        raise wrong(f"{expected}, without ..")
    return text


def _open_place(value: object) -> str:
    text = _place(value)
    if not text.strip("~/."):
        raise wrong("a folder that may be changed", "name the folders that commands need, not all of them")
    return text


def _commands(value: object) -> object:
    return [value] if isinstance(value, str) else () if value is None else value


def _list(value: object) -> object:
    if not isinstance(value, list | tuple):
        raise wrong("a list of texts", f"write [{value}]" if isinstance(value, str) and len(value) < 40 else "")
    return cast("object", value)


def _branch(value: object) -> str:
    text = _text(value)
    expected = "the name of a branch, as in main or work/login"
    if text == "HEAD":
        raise wrong(expected, "HEAD is whatever is checked out; name the branch")
    if text.startswith("refs/"):
        raise wrong(expected, "write the name without refs/heads/")
    if _REF_REFUSED.search(text) or len(text) > 200:
        raise wrong(expected)
    return text


def _base(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    if _BASE_REFUSED.search(text) or len(text) > 200 or not isinstance(value, str):
        raise wrong(
            "head, worktree, or a branch, tag or commit", "put it in quotes" if isinstance(value, int | float) else ""
        )
    return text


def _model_use(value: object) -> str:
    text = _text(value)
    provider, colon, rest = text.partition(":")
    if provider in PROVIDERS and rest.strip():
        return text
    if not colon and provider not in PROVIDERS:
        remedy = f"write script:{text}" if text.endswith((".yaml", ".yml")) else f"write anthropic:{text}"
        raise wrong("PROVIDER:NAME", remedy if re.fullmatch(r"[\w./-]{1,60}", text) else "")
    raise wrong("PROVIDER:NAME, with PROVIDER one of anthropic, script, replay")


def _base_url(value: object) -> str:
    text = _text(value)
    try:
        parts = urlsplit(text)
        host, has_user = parts.hostname, parts.username is not None
        _ = parts.port
    except ValueError:
        raise wrong("a URL, as in http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in text):
        raise wrong("a URL, as in http://127.0.0.1:8000")
    if has_user:
        raise wrong("a URL without user and password", "give the key in ANTHROPIC_API_KEY")
    return text


DURATION_SCHEMA: JsonSchemaValue = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*[smh]?$"},
    ],
}
_COMMANDS_SCHEMA: JsonSchemaValue = {
    "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}],
}
_NETWORK_SCHEMA: JsonSchemaValue = {
    "anyOf": [{"enum": ["off", "full"]}, {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}],
}
_PLACE_SCHEMA: JsonSchemaValue = {"type": "string", "pattern": "^(/|~/)"}
_DEFINITION_SCHEMA: JsonSchemaValue = {
    "anyOf": [{"enum": list(DEFINITIONS)}, {"type": "string", "pattern": r"/|\.md$"}]
}


@dataclass(frozen=True, slots=True, eq=False)
class ShortForm:
    """Tells the JSON Schema that a mapping may also be written as a single value."""

    short: JsonSchemaValue

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.short, handler(core)]}


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string", "minLength": 1})]
Definition = Annotated[str, BeforeValidator(_text), WithJsonSchema(_DEFINITION_SCHEMA)]
Name = Annotated[str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN}$"})]
TaskId = Annotated[
    str, BeforeValidator(_task_id), WithJsonSchema({"type": "string", "pattern": f"^{TASK_ID_PATTERN}$"})
]
EnvName = Annotated[str, BeforeValidator(_env_name)]
EnvValue = Annotated[str, BeforeValidator(_env_value), WithJsonSchema({"type": "string"})]
Count = Annotated[int, BeforeValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1})]
Replicas = Annotated[int, BeforeValidator(_replicas), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 100})]
Usd = Annotated[float, BeforeValidator(_usd), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
UsdLimit = Annotated[
    float | None,
    BeforeValidator(_usd_limit),
    PlainSerializer(_usd_written),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "none"}]}),
]
Duration = Annotated[float, BeforeValidator(seconds_of), WithJsonSchema(DURATION_SCHEMA)]
Branch = Annotated[str, BeforeValidator(_branch), WithJsonSchema({"type": "string", "minLength": 1})]
Base = Annotated[str, BeforeValidator(_base), WithJsonSchema({"type": "string", "minLength": 1})]
ModelUse = Annotated[str, BeforeValidator(_model_use), WithJsonSchema({"type": "string", "pattern": MODEL_USE_PATTERN})]
BaseUrl = Annotated[str, BeforeValidator(_base_url), WithJsonSchema({"type": "string", "format": "uri"})]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_list)]
Commands = Annotated[tuple[Text, ...], BeforeValidator(_commands), WithJsonSchema(_COMMANDS_SCHEMA)]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema({"type": "boolean"})]
Network = Annotated[
    Literal["off", "full"] | tuple[str, ...], BeforeValidator(_network), WithJsonSchema(_NETWORK_SCHEMA)
]
Place = Annotated[str, BeforeValidator(_place), WithJsonSchema(_PLACE_SCHEMA)]
Places = Annotated[tuple[Place, ...], BeforeValidator(_list)]
OpenPlace = Annotated[str, BeforeValidator(_open_place), WithJsonSchema(_PLACE_SCHEMA)]
OpenPlaces = Annotated[tuple[OpenPlace, ...], BeforeValidator(_list)]

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
