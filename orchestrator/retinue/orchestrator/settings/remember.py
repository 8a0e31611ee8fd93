"""Keeps the rules of a person's `always` in the local settings of a checkout, and what was trusted trusted."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Protocol, cast

from retinue.orchestrator.settings.parse import parse_settings
from retinue.orchestrator.settings.places import REMEMBERED
from retinue.orchestrator.state.paths import write_private
from retinue.tools.errors import EnvironmentProblem, SpecError


class _Yaml(Protocol):
    """What is used of a library without types. A document that was loaded is a mapping with its comments."""

    def load(self, stream: str) -> MutableMapping[str, object] | None: ...
    def dump(self, data: MutableMapping[str, object], stream: StringIO) -> None: ...


def remember_rules(root: Path, rules: Iterable[str]) -> Path:
    """Adds them under `permissions.allow`; what else stands there stays, comments included.

    SpecError: the file is not as it should be, or is reached through a link. EnvironmentProblem: it cannot be written.
    """
    path = root / REMEMBERED
    if path.is_symlink() or path.parent.is_symlink():
        raise SpecError(f"{path} is reached through a link, so nothing was kept there: put a file in its place")
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        before = path.read_text("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error}") from None
    write_private(path, with_rules(before, rules, str(path)))
    return path


def with_rules(text: str, rules: Iterable[str], name: str) -> str:
    """The same settings with these rules, none of them twice. Raises InvalidSpec for what is none."""
    known = parse_settings(text, name, foreign=False).content.permissions.allow
    new = [rule for rule in dict.fromkeys(rules) if rule not in known]
    return parsed_anew(text, new, name) if new else text


def parsed_anew(text: str, new: Sequence[str], name: str) -> str:
    """Through a parser that keeps comments; the outcome has to be settings again."""
    from ruamel.yaml import YAML

    yaml = cast("_Yaml", YAML())
    document = yaml.load(text) if text.strip() else None
    whole: MutableMapping[str, object] = document if document is not None else {}
    permissions = cast("MutableMapping[str, object]", whole.setdefault("permissions", {}))
    cast("list[str]", permissions.setdefault("allow", [])).extend(new)
    out = StringIO()
    yaml.dump(whole, out)
    parse_settings(out.getvalue(), name, foreign=False)
    return out.getvalue()
