"""The skills of one launch: those of the user, and those that the repository brings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from retinue.orchestrator.settings.places import UserPlaces
from retinue.tools.extension.skills.book import Skill
from retinue.tools.extension.skills.parse import FILE, MAX_BYTES, skills_of

_OWN, _FOREIGN = ".retinue/skills/", ".claude/skills/"
_MOST = 500


def gather_skills(
    contents: Mapping[str, bytes], places: UserPlaces, *, trusted: bool, foreign: bool
) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """And warnings. Of one name, the repository's stands before the user's, and its own before a foreign one.

    What a user's skill allows and runs always counts; a repository's, when it is trusted.
    """
    groups = [(_within(contents, _OWN), "project", trusted), (_user(places.config), "user", True)]
    if foreign:
        groups.insert(1, (_within(contents, _FOREIGN), "project", trusted))
        groups.append((_user(places.claude), "user", True))
    skills: list[Skill] = []
    warnings: list[str] = []
    for files, source, counts in groups:
        found, said = skills_of(files, "user" if source == "user" else "project", trusted=counts)
        skills += found
        warnings += said
    return tuple(skills), tuple(warnings)


def _within(contents: Mapping[str, bytes], folder: str) -> list[tuple[str, bytes]]:
    return [(path, data) for path, data in contents.items() if path.startswith(folder)][:_MOST]


def _user(folder: Path) -> list[tuple[str, bytes]]:
    try:
        paths = sorted((folder / "skills").glob(f"*/{FILE}"))[:_MOST]
        return [(str(path), path.open("rb").read(MAX_BYTES + 1)) for path in paths]
    except OSError:
        return []
