"""Keeps the rules of a person's `always` in the local settings of a checkout, and what was trusted trusted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from retinue.orchestrator.settings.parse import parse_settings
from retinue.orchestrator.settings.places import REMEMBERED
from retinue.orchestrator.state.paths import write_private
from retinue.tools.errors import EnvironmentProblem, SpecError

_ALLOW = ("permissions", "allow")


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
    from io import StringIO

    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    known = parse_settings(text, name, foreign=False).content.permissions.allow
    new = [rule for rule in dict.fromkeys(rules) if rule not in known]
    if not new:
        return text
    yaml = YAML()
    yaml.preserve_quotes = True
    document = yaml.load(text) if text.strip() else None
    whole = document if isinstance(document, CommentedMap) else CommentedMap()
    inner: object = whole
    for key in _ALLOW[:-1]:
        if not isinstance(inner, CommentedMap):
            raise SpecError(f"{name}: {key} is no mapping")
        inner = inner.setdefault(key, CommentedMap())
    if not isinstance(inner, CommentedMap):
        raise SpecError(f"{name}: permissions is no mapping")
    listed = inner.setdefault(_ALLOW[-1], CommentedSeq())
    listed.extend(new)
    out = StringIO()
    yaml.dump(whole, out)
    made = out.getvalue()
    parse_settings(made, name, foreign=False)
    return made if made.endswith(os.linesep) else f"{made}\n"
