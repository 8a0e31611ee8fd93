"""All settings of one launch: read once, checked, and joined into what the run carries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.definition import AgentDefinition
from retinue.orchestrator.mcp.servers import StdioServer
from retinue.orchestrator.settings.definitions import Found, definitions_in, user_definitions
from retinue.orchestrator.settings.files import MOST_BYTES, Brought
from retinue.orchestrator.settings.notes import gather_notes
from retinue.orchestrator.settings.parse import parse_settings
from retinue.orchestrator.settings.places import LOCAL, NOTES, PROJECT, SettingsPlace, UserPlaces, counts
from retinue.orchestrator.settings.servers import FILE as SERVERS
from retinue.orchestrator.settings.servers import servers_in
from retinue.orchestrator.settings.skills import gather_skills
from retinue.tools.errors import SpecError
from retinue.tools.extension.skills.book import Skill
from retinue.tools.hooks.config import parse_hooks
from retinue.tools.settings.merge import Merged, SourcedFile, merged
from retinue.tools.settings.model import NO_SETTINGS, Settings

ReadUser = Callable[[Path], bytes | None]
"""A file of the user's or of the machine's; None: there is none."""


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """What a launch goes by. `env` may hold secrets.

    withheld  what the repository brings that does not count, since nobody trusted it; one text a file
    warnings  what has no effect here, one text a file
    """

    settings: Settings = NO_SETTINGS
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    definitions: Mapping[str, AgentDefinition] = field(default_factory=dict[str, AgentDefinition])
    withheld: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    servers: tuple[StdioServer, ...] = ()


NOTHING_SET = LaunchSettings()


def trusted_part(brought: Brought) -> dict[str, bytes]:
    """What trust is about: all that executes, grants or routes. Specs are added by whoever knows them."""
    return {path: content for path, content in brought.contents.items() if counts(path)}


def load_settings(
    brought: Brought, places: UserPlaces, *, trusted: bool, flag: Path | None = None, read: ReadUser | None = None
) -> LaunchSettings:
    """`flag` is the file of `--settings`. Raises InvalidSpec, which names file, line and remedy."""
    read = read or read_user
    ours = [*_parsed(brought, places, flag, read, trusted, foreign=False)]
    compatible = merged(each for each, _ in ours).compatibility
    theirs = [*_parsed(brought, places, flag, read, trusted, foreign=True)] if compatible else []
    found = sorted((*ours, *theirs), key=lambda pair: pair[0].foreign, reverse=True)
    joined: Merged = merged(each for each, _ in found)
    kinds = (
        *user_definitions(places, read_folder, foreign=compatible),
        *definitions_in(brought.contents, trusted=trusted, foreign=compatible),
    )
    skills, bad_skills = gather_skills(brought.contents, places, trusted=trusted, foreign=compatible)
    shared = brought.contents.get(SERVERS, b"{}") if trusted and compatible else b"{}"
    servers, bad_servers = servers_in(shared)
    notes = gather_notes(brought.contents, places, read, kinds, foreign=compatible)
    return LaunchSettings(
        joined.settings.model_copy(update={"notes": notes, "trusted": trusted}),
        joined.env,
        {each.definition.name: each.definition for each in kinds if each.definition is not None},
        (*joined.withheld, *(text for each in kinds for text in each.withheld), *_other(brought, trusted, compatible)),
        (*_warnings(found, kinds, brought), *bad_skills, *bad_servers),
        skills,
        servers,
    )


def _parsed(
    brought: Brought, places: UserPlaces, flag: Path | None, read: ReadUser, trusted: bool, *, foreign: bool
) -> Iterator[tuple[SourcedFile, tuple[str, ...]]]:
    for place in places.settings():
        path = Path(place.path)
        if place.foreign is foreign and (data := read(path)) is not None:
            yield _file(place, data, str(path.parent) if place.layer == "user" else None, trusted=True)
    for place in (*PROJECT, *LOCAL):
        if place.foreign is foreign and (data := brought.contents.get(place.path)) is not None:
            yield _file(place, data, None, trusted=trusted)
    if flag is not None and not foreign:
        data = read(flag)
        if data is None:
            raise SpecError(f"--settings {flag}: there is no such file, or it cannot be read")
        yield _file(SettingsPlace("flag", str(flag), False), data, str(flag.absolute().parent), trusted=True)


def _file(place: SettingsPlace, data: bytes, base: str | None, *, trusted: bool) -> tuple[SourcedFile, tuple[str, ...]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{place.path} is not UTF-8: byte {error.start + 1} cannot be read; save it as UTF-8") from None
    parsed = parse_settings(text, place.path, foreign=place.foreign)
    return SourcedFile(place.layer, place.path, parsed.content, base, trusted, place.foreign), parsed.ignored


def _other(brought: Brought, trusted: bool, compatible: bool) -> Iterator[str]:
    """What else of a repository counts only when it is trusted."""
    if trusted:
        return
    for path in brought.contents:
        if path in (".mcp.json", ".lsp.json") and compatible:
            yield f"{path}: the servers in it"
    skills = [path for path in brought.contents if path.endswith("/SKILL.md") and counts(path)]
    if skills:
        word = "skill" if len(skills) == 1 else "skills"
        yield f"{len(skills)} {word}: the tools that they allow, and the commands in them"


def _warnings(
    found: list[tuple[SourcedFile, tuple[str, ...]]], kinds: tuple[Found, ...], brought: Brought
) -> Iterator[str]:
    for each, ignored in found:
        if ignored:
            yield f"{each.file}: without effect here: {', '.join(ignored)}"
        yield from parse_hooks(each.content.hooks, each.file, each.source).remarks
    yield from (text for each in kinds for text in each.warnings)
    lost = [path for path in brought.links if path not in NOTES or not brought.contents.keys() & set(NOTES)]
    yield from (f"{path} is a link, and links are not followed here: it was left out" for path in lost)


def read_user(path: Path) -> bytes | None:
    """A file of the user's own may be a link: its place is nobody else's to choose."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError:
        return None
    if len(data) > MOST_BYTES:
        raise SpecError(f"{path} is larger than {MOST_BYTES:,} bytes: nobody reads such settings")
    return data


def read_folder(folder: Path) -> dict[str, bytes]:
    """The Markdown files below a folder of the user's."""
    try:
        paths = sorted(folder.rglob("*.md"))
    except OSError:
        return {}
    return {str(path): data for path in paths[:500] if (data := read_user(path)) is not None}
