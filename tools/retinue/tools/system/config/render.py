"""How settings look."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Table
from retinue.tools.system.config.tool import ConfigInput, ConfigOutput


class Render(Renderer[ConfigInput, ConfigOutput]):
    def use(self, args: ConfigInput) -> Blocks:
        name = args.setting or "all"
        return (Heading("Setting", name if args.value is None else f"{name} = {args.value}"),)

    def result(self, args: ConfigInput, data: ConfigOutput) -> Blocks:
        if data.previous is not None:
            return tuple(Line(f"{s.name}: {data.previous} → {s.value}", "good") for s in data.settings)
        return (Table(("setting", "value", "about"), tuple((s.name, s.value, s.about) for s in data.settings)),)
