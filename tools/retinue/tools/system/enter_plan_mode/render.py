"""How the beginning of a plan looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.system.enter_plan_mode.tool import EnterPlanModeInput, EnterPlanModeOutput


class Render(Renderer[EnterPlanModeInput, EnterPlanModeOutput]):
    def use(self, args: EnterPlanModeInput) -> Blocks:
        return (Heading("Begins to plan"),)

    def result(self, args: EnterPlanModeInput, data: EnterPlanModeOutput) -> Blocks:
        return (Line(f"only what reads is allowed until the plan is approved: {data.file}", "dim"),)
