"""All settings files as one: lists add up, scalars are overridden, variables by name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from retinue.tools.permissions.decide import Mode
from retinue.tools.settings.model import (
    LAYERS,
    NO_SETTINGS,
    ClassifierSettings,
    HookSource,
    Layer,
    Settings,
    SettingsFile,
    SourcedRules,
)
from retinue.tools.web.settings import DEFAULT_WEB

T = TypeVar("T")
STRICT_MODES = frozenset(("default", "plan", "dontAsk"))
"""Modes that grant nothing."""


@dataclass(frozen=True, slots=True)
class SourcedFile:
    """One file that was read.

    base     where `/path` of its rules starts; None: the workspace
    trusted  false: what it grants, runs or routes does not count
    foreign  it is not ours, and not read when compatibility is off
    """

    source: Layer
    file: str
    content: SettingsFile
    base: str | None = None
    trusted: bool = True
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """`env` may hold secrets, so it stands apart. `withheld` names what did not count for want of trust."""

    settings: Settings = NO_SETTINGS
    env: dict[str, str] = field(default_factory=dict[str, str])
    withheld: tuple[str, ...] = ()
    compatibility: bool = True


def merged(files: Iterable[SourcedFile]) -> Merged:
    """`allowManagedPermissionRulesOnly` and `allowManagedHooksOnly` of a policy leave out what others say."""
    given = sorted(files, key=lambda each: LAYERS.index(each.source))
    compatible = _last(_trusted(given), lambda file: file.compatibility) is not False
    read = [each for each in given if compatible or not each.foreign]
    trusted = _trusted(read)
    policy = [each.content for each in trusted if each.source == "policy"]
    modes: list[Mode] = [mode for each in read if (mode := _mode(each)) is not None]
    hooks_off = _hooks_off(trusted, policy)
    settings = Settings(
        rules=tuple(rules for each in read if (rules := _rules(each)) is not None),
        mode=modes[-1] if modes else None,
        bypass_refused=any(each.content.permissions.disable_bypass_permissions_mode for each in trusted),
        only_policy=any(file.allow_managed_permission_rules_only for file in policy),
        extra_dirs=_unique(d for each in trusted for d in each.content.permissions.additional_directories),
        hooks=tuple(hook for hook in _hooks(trusted) if hook.source == "policy" or not hooks_off),
        only_policy_hooks=hooks_off,
        classifier=_last(_personal(trusted), lambda file: file.classifier) or ClassifierSettings(),
        web=_last(trusted, lambda file: file.web) or DEFAULT_WEB,
        lsp={name: server for each in trusted for name, server in each.content.lsp.items()},
    )
    if settings.only_policy:
        kept = tuple(_of_others(rules) for rules in settings.rules)
        settings = settings.model_copy(update={"rules": kept})
    return Merged(
        settings,
        {name: value for each in trusted for name, value in each.content.env.items()},
        tuple(text for each in read if not each.trusted for text in _withheld(each)),
        compatible,
    )


def _trusted(files: Iterable[SourcedFile]) -> list[SourcedFile]:
    return [each for each in files if each.trusted]


def _personal(files: Iterable[SourcedFile]) -> list[SourcedFile]:
    """What no repository may say, trusted or not: who decides in the place of a person."""
    return [each for each in files if each.source in ("user", "flag", "policy")]


def _last(files: Sequence[SourcedFile], of: Callable[[SettingsFile], T | None]) -> T | None:
    return next((value for each in reversed(files) if (value := of(each.content)) is not None), None)


def _mode(each: SourcedFile) -> Mode | None:
    mode = each.content.permissions.default_mode
    return mode if each.trusted or mode in STRICT_MODES else None


def _rules(each: SourcedFile) -> SourcedRules | None:
    said = each.content.permissions
    allow = said.allow if each.trusted else ()
    if not (allow or said.ask or said.deny):
        return None
    return SourcedRules(source=each.source, file=each.file, base=each.base, allow=allow, ask=said.ask, deny=said.deny)


def _of_others(rules: SourcedRules) -> SourcedRules:
    """What a policy leaves of the rules of others: nothing is loosened by leaving out a prohibition."""
    return rules if rules.source == "policy" else rules.model_copy(update={"allow": ()})


def _hooks(trusted: Iterable[SourcedFile]) -> Iterator[HookSource]:
    for each in trusted:
        if each.content.hooks:
            yield HookSource(source=each.source, file=each.file, events=each.content.hooks)


def _hooks_off(trusted: Sequence[SourcedFile], policy: Iterable[SettingsFile]) -> bool:
    """Whether only those of a policy run."""
    off = _last(trusted, lambda file: file.disable_all_hooks) is True
    return off or any(file.allow_managed_hooks_only for file in policy)


def _withheld(each: SourcedFile) -> Iterable[str]:
    """What an untrusted file says that does not count, in a few words each."""
    said, permissions = each.content, each.content.permissions
    counts = (
        (len(permissions.allow), "allow rule"),
        (len(said.env), "variable"),
        (len(said.hooks), "event with hooks"),
        (len(permissions.additional_directories), "further folder"),
        (len(said.lsp), "language server"),
    )
    found = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    if permissions.default_mode is not None and permissions.default_mode not in STRICT_MODES:
        found.append(f"the mode {permissions.default_mode}")
    if said.web is not None:
        found.append("where to search the web")
    if found:
        yield f"{each.file}: {', '.join(found)}"


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
