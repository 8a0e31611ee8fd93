"""What settings mean for a spec and the plan of one run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retinue.agents.boot import RuleSet
from retinue.agents.definition import AgentDefinition
from retinue.orchestrator.settings.load import LaunchSettings
from retinue.orchestrator.spec.model import TeamSpec
from retinue.tools.errors import SpecError
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import RuleTexts
from retinue.tools.settings.model import Settings


def with_settings(spec: TeamSpec, given: LaunchSettings, root: Path, home: Path) -> TeamSpec:
    """What the spec leaves open, filled in: modes, and folders that commands may change as well. Raises SpecError."""
    settings = given.settings
    team = spec.permissions
    if "mode" not in team.model_fields_set:
        modes = {key: _mode_of(given.definitions.get(agent.definition)) for key, agent in spec.agents.items()}
        agents = {
            key: agent.model_copy(
                update={"permissions": agent.permissions.model_copy(update={"mode": agent.permissions.mode or mode})}
            )
            if (mode := modes[key]) is not None
            else agent
            for key, agent in spec.agents.items()
        }
        team = team.model_copy(update={"mode": settings.mode or team.mode})
        spec = spec.model_copy(update={"permissions": team, "agents": agents})
    if settings.bypass_refused and any(m.permissions.mode == "bypassPermissions" for m in spec.members()):
        raise SpecError("permissions.mode: a policy of this machine lets no agent work in bypassPermissions")
    extra = extra_dirs(settings, root, home)
    if not extra:
        return spec
    sandbox = spec.sandbox.model_copy(update={"writable": (*spec.sandbox.writable, *extra)})
    return spec.model_copy(update={"sandbox": sandbox})


def _mode_of(definition: AgentDefinition | None) -> Mode | None:
    return definition.mode if definition is not None else None


def extra_dirs(settings: Settings, root: Path, home: Path) -> tuple[str, ...]:
    """Absolute; a relative one starts at the repository."""
    paths = (home / text[2:] if text.startswith("~/") else root / text for text in settings.extra_dirs)
    return tuple(dict.fromkeys(str(path) for path in paths))


def rule_sets(settings: Settings, spec: RuleSet, cli: RuleSet) -> tuple[RuleSet, ...]:
    """All rules of an agent, with where each is from. A policy can leave out what others allow."""
    given = tuple(
        RuleSet(source=each.source, allow=each.allow, ask=each.ask, deny=each.deny, base=each.base)
        for each in settings.rules
    )
    own = (spec, cli)
    if settings.only_policy:
        own = tuple(each.model_copy(update={"allow": ()}) for each in own)
    return (*given, *own)


def settings_rules(settings: Settings) -> tuple[RuleTexts, ...]:
    """The rules of settings alone, for whoever has no plan."""
    return tuple(
        RuleTexts(each.source, each.allow, each.ask, each.deny, Path(each.base) if each.base is not None else None)
        for each in settings.rules
    )


def tools_env(given: LaunchSettings, own: Mapping[str, str]) -> dict[str, str]:
    """Variables of the tools of one agent: what the spec says stands."""
    return {**given.env, **own}
