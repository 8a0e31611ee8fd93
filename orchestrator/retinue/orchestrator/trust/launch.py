"""What a launch finds in its repository, and whether it was trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.orchestrator.settings.files import Brought, read_brought
from retinue.orchestrator.settings.load import LaunchSettings, load_settings, trusted_part
from retinue.orchestrator.settings.notes import MOST_DEPTH, imports_of
from retinue.orchestrator.settings.places import NOTES, UserPlaces
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.trust.store import Standing, TrustStore
from retinue.orchestrator.workspaces.user_repo import Base, UserRepo
from retinue.tools.text import counted


@dataclass(frozen=True, slots=True)
class Gathered:
    """Read once; nothing of it changes when the files do.

    repository  what trust is recorded for
    part        what trust is about
    grants      what a spec that is part of the repository grants, runs or routes
    """

    brought: Brought
    places: UserPlaces
    root: Path
    repository: Path
    part: Mapping[str, bytes]
    standing: Standing
    flag: Path | None = None
    grants: tuple[str, ...] = ()

    def settings(self, *, trusted: bool) -> LaunchSettings:
        return load_settings(self.brought, self.places, trusted=trusted, flag=self.flag)

    @property
    def trusted(self) -> bool:
        """What nobody could distrust is as good as trusted."""
        return self.standing.state == "trusted" or not self.part


@dataclass(frozen=True, slots=True)
class SpecAt:
    """A spec of the person who launches: where it is, and the text that was read."""

    path: Path
    text: str
    spec: TeamSpec
    definitions: tuple[Path, ...] = ()


async def gather(
    user: UserRepo | None,
    base: Base | None,
    folder: Path,
    env: Mapping[str, str],
    store: TrustStore,
    *,
    flag: Path | None = None,
    spec: SpecAt | None = None,
) -> Gathered:
    """`folder` is where the team works when there is no repository: a real path."""
    root = user.root if user is not None else folder
    repository = user.common_dir if user is not None else folder
    mine = _inside(root, spec.path) if spec is not None else None
    kinds = [path for each in (spec.definitions if spec is not None else ()) if (path := _inside(root, each))]
    brought = await read_brought(user, base, root, [path for path in (mine, *kinds) if path is not None])
    brought = await _with_imports(brought, user, base, root)
    part = trusted_part(brought)
    part |= {path: brought.contents[path] for path in kinds if path in brought.known}
    grants: tuple[str, ...] = ()
    if spec is not None and mine is not None and mine in brought.known and user is not None:
        part[mine] = spec.text.encode("utf-8", "surrogateescape")
        grants = spec_grants(spec.spec)
    return Gathered(brought, UserPlaces.of(env), root, repository, part, store.standing(repository, part), flag, grants)


async def _with_imports(brought: Brought, user: UserRepo | None, base: Base | None, root: Path) -> Brought:
    """And what its instructions import, which is read the same way."""
    texts = {path: brought.contents[path] for path in NOTES if path in brought.contents}
    for _ in range(MOST_DEPTH):
        wanted = {name for path, data in texts.items() for name in imports_of(path, data)} - brought.contents.keys()
        if not wanted:
            break
        more = await read_brought(user, base, root, sorted(wanted))
        texts = {path: more.contents[path] for path in more.known}
        brought = replace(brought, contents={**brought.contents, **texts})
    return brought


def _inside(root: Path, path: Path) -> str | None:
    real, home = path.expanduser().resolve(), root.resolve()
    return str(real.relative_to(home)) if real.is_relative_to(home) and real != home else None


def spec_grants(spec: TeamSpec) -> tuple[str, ...]:
    """What a spec lets happen beyond what its agents could do anyway, in a few words each."""
    members = spec.members()
    allowed = {rule for member in members for rule in member.permissions.allow}
    modes = {member.permissions.mode for member in members} & {"acceptEdits", "bypassPermissions"}
    commands = len(spec.repo.setup) + len(spec.merge.verify) + sum(task.done_when is not None for task in spec.tasks)
    models = (spec.small_model, *(member.model for member in members))
    sandbox = spec.sandbox
    looser = (
        sandbox.network != "off" or sandbox.writable or sandbox.excluded_commands or sandbox.allow_unsandboxed
    ) or not sandbox.enabled
    found = [
        f"{len(allowed)} allow rule{'' if len(allowed) == 1 else 's'}" if allowed else "",
        f"the mode {' and '.join(sorted(modes))}" if modes else "",
        f"{commands} command{'' if commands == 1 else 's'} to run" if commands else "",
        "variables" if any(member.env for member in members) else "",
        "another address of a model" if any(model is not None and model.base_url for model in models) else "",
        counted(len(spec.lsp), "language server") if spec.lsp else "",
        counted(len(spec.web.local_hosts), "local server") + " to read" if spec.web.local_hosts else "",
        "a search of the web" if spec.web.search.ways else "",
        "a looser sandbox" if looser else "",
    ]
    return tuple(text for text in found if text)
