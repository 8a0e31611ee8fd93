"""Skills as an agent has them: instructions that it reads when they are used, and a list of what there is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict

from retinue.tools.text import for_model, one_line

MAX_DESCRIPTION_CHARS = 1_536
WINDOW_TOKENS = 200_000
LIST_SHARE = 0.01
CHARS_PER_TOKEN = 4
_SHORTEST = 60


class Skill(BaseModel):
    """One SKILL.md.

    body             what the model is told when it is used, its placeholders not filled in
    arguments        names that stand for the first, second, … argument
    fork             a sub-agent carries it out; `agent` is its kind
    model_invocable  agents may use it by themselves
    user_invocable   people may
    paths            the files that it is about; all when empty
    folder           where it lies: absolute, or relative to the workspace
    trusted          what it allows and runs counts, not only its text
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    model: str | None = None
    fork: bool = False
    agent: str | None = None
    model_invocable: bool = True
    user_invocable: bool = True
    paths: tuple[str, ...] = ()
    body: str
    folder: str = ""
    origin: str = ""
    source: Literal["user", "project"] = "project"
    trusted: bool = False

    @property
    def about(self) -> str:
        """What the list says of it."""
        parts = (self.description, self.when_to_use and f"Use it when {self.when_to_use}")
        text = one_line(" ".join(part for part in parts if part), MAX_DESCRIPTION_CHARS)
        files = f" (for {', '.join(self.paths)})" if self.paths else ""
        return for_model(f"{text}{one_line(files)}")


@dataclass(frozen=True)
class SkillBook:
    """All skills of one agent. Of two with one name the first stays."""

    skills: tuple[Skill, ...] = ()

    @cached_property
    def _by_name(self) -> dict[str, Skill]:
        return {skill.name: skill for skill in reversed(self.skills)}

    def find(self, name: str) -> Skill | None:
        return self._by_name.get(name)

    @property
    def offered(self) -> tuple[Skill, ...]:
        """Those that the model may use, by name."""
        return tuple(self._by_name[name] for name in sorted(self._by_name) if self._by_name[name].model_invocable)

    def listing(self, window_tokens: int = WINDOW_TOKENS) -> str:
        """A line for each, in one hundredth of the context window: shorter lines where that is too little."""
        room = int(window_tokens * LIST_SHARE * CHARS_PER_TOKEN)
        full = [f"- {skill.name}: {skill.about}" if skill.about else f"- {skill.name}" for skill in self.offered]
        if _size(full) <= room:
            return "\n".join(full)
        names = [f"- {skill.name}" for skill in self.offered]
        share = (room - _size(names)) // max(1, len(full)) + min(map(len, names), default=0)
        if share >= _SHORTEST:
            return "\n".join(line if len(line) <= share else f"{line[: share - 1]}…" for line in full)
        return "\n".join(names)


NO_SKILLS = SkillBook()


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)
