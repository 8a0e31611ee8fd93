"""How Skill looks."""

from __future__ import annotations

from retinue.tools.extension.skill.tool import SkillInput, SkillOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown


class Render(Renderer[SkillInput, SkillOutput]):
    def use(self, args: SkillInput) -> Blocks:
        return (Heading("Skill", self.tool.title(args).removeprefix("Skill ")),)

    def result(self, args: SkillInput, data: SkillOutput) -> Blocks:
        notes = tuple(Line(note, "warn") for note in data.notes)
        return (Markdown(data.text) if data.forked else Line("its instructions were given", "dim"), *notes)
