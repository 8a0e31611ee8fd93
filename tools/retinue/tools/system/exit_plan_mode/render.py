"""How a plan looks that waits for a yes, and what came of it."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown
from retinue.tools.system.exit_plan_mode.tool import ExitPlanModeInput, ExitPlanModeOutput


class Render(Renderer[ExitPlanModeInput, ExitPlanModeOutput]):
    def use(self, args: ExitPlanModeInput) -> Blocks:
        plan: Blocks = (Markdown(args.plan),) if args.plan.strip() else ()
        return (Heading("Plan", args.plan_file), *plan)

    def result(self, args: ExitPlanModeInput, data: ExitPlanModeOutput) -> Blocks:
        shown: Blocks = (Heading("Plan", data.file), Markdown(data.plan))
        if not data.approved:
            return (*shown, Line(f"not approved: {data.refused}", "bad"))
        return (*shown, Line("approved, with changes of your own" if data.edited else "approved", "good"))
