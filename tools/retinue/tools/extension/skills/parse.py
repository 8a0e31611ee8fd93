"""Reads SKILL.md files. Pure: contents come in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal, Protocol, cast

from retinue.tools.errors import SpecError
from retinue.tools.extension.skills.book import Skill

FILE = "SKILL.md"
MAX_BYTES = 256 * 1024
_MAX_FRONT_CHARS = 32_000
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:./-]{0,79}\Z")
_TOOL = re.compile(r"[A-Za-z_*?][\w*?.-]*(?:\([^()\n]*\))?")
_KNOWN = frozenset(
    {"name", "description", "when_to_use", "argument-hint", "arguments", "allowed-tools", "disallowed-tools"}
    | {"model", "context", "agent", "disable-model-invocation", "user-invocable", "paths"}
)
_LATER = frozenset(["effort", "background", "hooks", "shell", "license", "metadata", "compatibility", "version"])

Source = Literal["user", "project"]


def skills_of(
    files: Iterable[tuple[str, bytes]], source: Source, *, trusted: bool
) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """The skills in (path, content) pairs, in the order of their paths, and a warning for each that is none."""
    found: list[Skill] = []
    warnings: list[str] = []
    for path, content in sorted(files):
        if PurePosixPath(path).name != FILE:
            continue
        try:
            skill, said = parse_skill(path, content, source, trusted=trusted)
        except SpecError as error:
            warnings.append(f"{error}; the skill was left out")
        else:
            found.append(skill)
            warnings += said
    return tuple(found), tuple(warnings)


def parse_skill(path: str, content: bytes, source: Source, *, trusted: bool) -> tuple[Skill, tuple[str, ...]]:
    """SpecError names the file, what was found and what to write. Keys without effect here are a warning."""
    if len(content) > MAX_BYTES:
        raise SpecError(f"{path} has more than {MAX_BYTES:,} bytes: put what is long into files beside it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path} is not UTF-8: byte {error.start + 1} cannot be read") from None
    front = _FRONT.match(text)
    values = _values(front[1], path) if front else dict[str, object]()
    folder = PurePosixPath(path).parent
    name = _text(values, "name", path) or folder.name
    if not _NAME.match(name):
        raise SpecError(f"{path}: name is {name!r}; write letters, digits, - and _ only, 80 at most")
    context = _text(values, "context", path)
    if context not in ("", "fork", "inline"):
        raise SpecError(f"{path}: context is {context!r}; write fork, or leave it out")
    body = text[front.end() :].strip() if front else text.strip()
    ignored = sorted(values.keys() - _KNOWN)
    skill = Skill(
        name=name,
        description=_text(values, "description", path) or _first_paragraph(body),
        when_to_use=_text(values, "when_to_use", path),
        argument_hint=_text(values, "argument-hint", path),
        arguments=_words(values, "arguments", path),
        allowed_tools=_rules(values, "allowed-tools", path),
        disallowed_tools=_rules(values, "disallowed-tools", path),
        model=_text(values, "model", path) or None,
        fork=context == "fork",
        agent=_text(values, "agent", path) or None,
        model_invocable=not _flag(values, "disable-model-invocation", path, default=False),
        user_invocable=_flag(values, "user-invocable", path, default=True),
        paths=_words(values, "paths", path),
        body=body,
        folder=str(folder),
        origin=path,
        source=source,
        trusted=trusted,
    )
    unknown = [key for key in ignored if key not in _LATER]
    return skill, (f"{path}: without effect here: {', '.join(unknown)}",) if unknown else ()


class _Reader(Protocol):
    def load(self, stream: str) -> object: ...


def _values(front: str, path: str) -> Mapping[str, object]:
    from ruamel.yaml import YAML  # here, because it is slow to load and only a launch reads skills
    from ruamel.yaml.error import YAMLError

    if len(front) > _MAX_FRONT_CHARS:
        raise SpecError(f"{path}: the front matter has more than {_MAX_FRONT_CHARS:,} characters")
    try:
        reader = cast(_Reader, YAML(typ="safe", pure=True))
        loaded = reader.load(front)
    except (YAMLError, ValueError, RecursionError) as error:
        line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SpecError(f"{path}: the front matter is no YAML ({line}); quote values that hold a colon") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise SpecError(f"{path}: the front matter is no mapping; write lines such as `name: deploy`")
    return {str(key): value for key, value in cast("dict[object, object]", loaded).items()}


def _text(values: Mapping[str, object], key: str, path: str) -> str:
    value = values.get(key)
    if value is None:
        return ""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value).strip()
    if key == "argument-hint" and isinstance(value, list):  # `[file]` without quotes is a list
        return f"[{', '.join(map(str, cast('list[object]', value)))}]"
    raise SpecError(f"{path}: {key} is no text; write `{key}: ...` on one line")


def _flag(values: Mapping[str, object], key: str, path: str, *, default: bool) -> bool:
    value = values.get(key, default)
    if isinstance(value, bool):
        return value
    raise SpecError(f"{path}: {key} is {value!r}; write true or false")


def _words(values: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
    value = values.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    if isinstance(value, list):
        return tuple(str(item).strip() for item in cast("list[object]", value))
    raise SpecError(f"{path}: {key} is neither a text nor a list")


def _rules(values: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
    """`Read, Bash(git add *)`, with commas, spaces or as a list."""
    value = values.get(key)
    if isinstance(value, list):
        return tuple(str(item).strip() for item in cast("list[object]", value))
    return tuple(_TOOL.findall(_text(values, key, path)))


def _first_paragraph(body: str) -> str:
    return next((" ".join(part.split()) for part in body.split("\n\n") if part.strip().strip("#")), "")
