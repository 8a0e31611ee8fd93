"""Where settings and instructions lie. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.settings.model import Layer

MANAGED = Path("/etc/retinue/settings.yaml")
MANAGED_FOREIGN = Path("/etc/claude-code/managed-settings.json")

FOLDERS = (".claude", ".retinue")
"""What a repository says about agents lies in these, and in the files below."""

FILES = (".mcp.json", ".lsp.json")
NOTES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
"""Instructions of a repository, in the order in which agents read them."""

OWN_NOTES = "CLAUDE.local.md"
NOT_READ = ("worktrees", "projects", "plans", "CLAUDE.md")
"""What lies directly in those folders and executes, grants and routes nothing."""


@dataclass(frozen=True, slots=True)
class SettingsPlace:
    """`path` is absolute for a file of the machine, relative to its root for one of a repository."""

    layer: Layer
    path: str
    foreign: bool


PROJECT = (
    SettingsPlace("project", ".claude/settings.json", True),
    SettingsPlace("project", ".retinue/settings.yaml", False),
)
LOCAL = (
    SettingsPlace("local", ".claude/settings.local.json", True),
    SettingsPlace("local", ".retinue/settings.local.yaml", False),
)
REMEMBERED = ".retinue/settings.local.yaml"
"""Where an `always` of a person is kept."""


@dataclass(frozen=True, slots=True)
class UserPlaces:
    """The folders of one user, and the files that who manages the machine keeps."""

    home: Path
    config: Path
    claude: Path
    managed: Path = MANAGED
    managed_foreign: Path = MANAGED_FOREIGN

    @classmethod
    def of(cls, env: Mapping[str, str]) -> UserPlaces:
        home = Path(env.get("HOME") or "/nonexistent")
        config = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "retinue"
        return cls(home, config, Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude"))

    def settings(self) -> tuple[SettingsPlace, ...]:
        """From the weakest to the strongest of each layer."""
        return (
            SettingsPlace("user", str(self.claude / "settings.json"), True),
            SettingsPlace("user", str(self.config / "settings.yaml"), False),
            SettingsPlace("policy", str(self.managed_foreign), True),
            SettingsPlace("policy", str(self.managed), False),
        )

    def notes(self) -> tuple[tuple[Path, bool], ...]:
        """Instructions of the user, and whether they are foreign."""
        return (self.claude / "CLAUDE.md", True), (self.config / "AGENTS.md", False)


def counts(path: str) -> bool:
    """Whether a file of a repository executes, grants or routes: what trust is about."""
    head, _, rest = path.partition("/")
    if not rest:
        return head in FILES
    return head in FOLDERS and rest.partition("/")[0] not in NOT_READ
