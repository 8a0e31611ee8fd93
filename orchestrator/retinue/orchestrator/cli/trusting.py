"""Asks, at a launch, for the trust that what a repository brings needs; and says what did not count without it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from retinue.orchestrator.cli import output
from retinue.tools.errors import SpecError

if TYPE_CHECKING:
    from retinue.orchestrator.settings.load import LaunchSettings
    from retinue.orchestrator.spec.load import LoadedSpec
    from retinue.orchestrator.state.paths import StateDir
    from retinue.orchestrator.trust.launch import Gathered
    from retinue.orchestrator.trust.store import TrustStore

_REMEDY = "`retinue trust --show` lists it, `retinue trust` accepts it"


def gathered_for(
    loaded: LoadedSpec, state: StateDir, env: Mapping[str, str], flag: Path | None, *, written: bool = True
) -> Gathered:
    """`written`: the spec is a file. Raises SpecError."""
    from retinue.orchestrator.prepare import open_repository
    from retinue.orchestrator.spec.environment import repository_path
    from retinue.orchestrator.trust.launch import SpecAt, gather
    from retinue.orchestrator.trust.store import TrustStore
    from retinue.orchestrator.workspaces.git import Git

    kinds = tuple(loaded.file(agent.definition) for agent in loaded.spec.agents.values() if "/" in agent.definition)
    spec = SpecAt(loaded.path, loaded.source_text, loaded.spec, kinds) if written else None

    async def look() -> Gathered:
        user, base = await open_repository(loaded, Git())
        folder = repository_path(loaded.spec).resolve()
        return await gather(user, base, folder, env, TrustStore.of(state.root), flag=flag, spec=spec)

    return asyncio.run(look())


def settled(gathered: Gathered, state: StateDir, *, trust: bool) -> LaunchSettings:
    """What this launch goes by. On a terminal a person is asked; piped, what changed since is refused.

    trust  accepted for this launch, without being asked
    """
    from retinue.orchestrator.trust.store import TrustStore

    if trust or gathered.trusted:
        return _told(gathered.settings(trusted=True))
    without = gathered.settings(trusted=False)
    brings = brought_lines(gathered, without)
    if not brings:
        return _told(without)
    if sys.stdin.isatty():
        output.note(*question_lines(gathered, brings))
        if typer.confirm("Trust it?", default=False, err=True):
            TrustStore.of(state.root).record(gathered.repository, gathered.part, date.today().isoformat())
            return _told(gathered.settings(trusted=True))
        if gathered.grants:
            raise SpecError("the spec is part of the repository: nothing was started without your trust")
        return _told(without)
    if gathered.standing.state == "changed":
        raise SpecError(
            f"what this repository brings is not what you trusted: {gathered.standing.text}; {_REMEDY}, "
            "and --trust accepts it for this launch"
        )
    if gathered.grants:
        raise SpecError(
            f"the spec is part of the repository, which nobody trusted yet, and it grants: "
            f"{', '.join(gathered.grants)}; {_REMEDY}, and --trust accepts it for this launch"
        )
    output.note(untrusted_line(brings))
    return _told(without)


def brought_lines(gathered: Gathered, without: LaunchSettings) -> tuple[str, ...]:
    """All that would count if it was trusted."""
    spec = (f"the spec: {', '.join(gathered.grants)}",) if gathered.grants else ()
    return (*without.withheld, *spec)


def untrusted_line(brings: tuple[str, ...]) -> str:
    """One line for `up`, `plan` and `doctor`."""
    return f"not trusted, so without effect: {'; '.join(brings)} ({_REMEDY})"


def question_lines(gathered: Gathered, brings: tuple[str, ...]) -> tuple[str, ...]:
    changed = gathered.standing.state == "changed"
    first = "This repository is not what you trusted." if changed else "This repository brings what runs or grants:"
    return (
        first,
        *(f"  {change}" for change in gathered.standing.changes),
        *(("It would have in effect:",) if changed else ()),
        *(f"  {each}" for each in brings),
    )


def _told(settings: LaunchSettings) -> LaunchSettings:
    output.note(*(f"warning: {warning}" for warning in settings.warnings))
    return settings


def store_of(state_dir: Path | None) -> TrustStore:
    from retinue.orchestrator.state.paths import StateDir, state_root
    from retinue.orchestrator.trust.store import TrustStore

    return TrustStore.of(StateDir(state_root(os.environ, state_dir)).root)


def look(path: Path, base: str, store: TrustStore) -> Gathered:
    """What the next launch there would find."""
    from retinue.orchestrator.spec.load import load_spec
    from retinue.orchestrator.trust.launch import SpecAt, gather
    from retinue.orchestrator.workspaces.git import Git
    from retinue.orchestrator.workspaces.user_repo import UserRepo

    is_spec = path.is_file()
    folder = (path.parent if is_spec else path).resolve()
    loaded = load_spec(path, env=os.environ) if is_spec else None
    kinds = [loaded.file(a.definition) for a in loaded.spec.agents.values() if "/" in a.definition] if loaded else []
    spec = SpecAt(loaded.path, loaded.source_text, loaded.spec, tuple(kinds)) if loaded else None
    if loaded is not None:
        base = loaded.spec.repo.base

    async def look() -> Gathered:
        try:
            user = await UserRepo.open(Git(), folder)
        except SpecError:
            return await gather(None, None, folder, os.environ, store, spec=spec)
        return await gather(user, await user.resolve_base(base), folder, os.environ, store, spec=spec)

    return asyncio.run(look())


def remember(rules: tuple[str, ...], folder: Path, store: TrustStore) -> None:
    """The `always` of a person: kept in the local settings; what was trusted before is trusted with them."""
    from retinue.orchestrator.settings.remember import remember_rules

    before = look(folder, "head", store)
    path = remember_rules(before.root, rules)
    if before.trusted:
        after = look(folder, "head", store)
        store.record(after.repository, after.part, date.today().isoformat())
    output.note(f"kept in {path}")
