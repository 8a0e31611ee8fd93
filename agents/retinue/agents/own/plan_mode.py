"""Implements `PlanPort`: the mode plan of one agent, from its records, over the rights of its session."""

from __future__ import annotations

from pathlib import Path

from retinue.agents.model.messages import Wire
from retinue.agents.own.keeping import Kept
from retinue.tools.errors import ToolError
from retinue.tools.people.ports import HumanPort, PlanVerdict
from retinue.tools.permissions.chain import PermissionPolicy
from retinue.tools.permissions.decide import Mode
from retinue.tools.system import planning
from retinue.tools.system.ports import PlanEntry
from retinue.tools.threads import in_thread

MAX_PLAN = 200_000
"""Characters of a plan's file that are looked at."""

_NOBODY = (
    "nobody here can approve a plan (permissions.on_ask: deny). Put the plan into your last message, and end with it"
)


class PlanState(Wire):
    """`since` is the request at which planning began; `again`: there was a plan of an earlier time."""

    planning: bool
    since: int = 0
    again: bool = False


class Planning:
    """`human` is who can approve a plan. An agent whose own rights say `plan` plans from its first request on."""

    def __init__(self, kept: Kept[PlanState], policy: PermissionPolicy, file: Path, human: HumanPort | None) -> None:
        self._kept = kept
        self._policy = policy
        self._file = file
        self._human = human
        self._born = bool(policy.rights) and policy.rights[0].mode == "plan"
        self._recover()

    def _recover(self) -> None:
        """The rights as the records left them."""
        state = self._kept.value
        if self._born or (state is not None and state.planning):
            self._policy.session.enter_plan(self._file)
        if state is not None and not state.planning:
            self._policy.session.leave_plan(self._after)

    @property
    def _after(self) -> Mode | None:
        return "default" if self._born else None

    @property
    def planning(self) -> bool:
        return self._policy.mode_now() == "plan"

    @property
    def file(self) -> Path:
        return self._file

    @property
    def can_be_approved(self) -> bool:
        return self._human is not None

    async def enter(self, key: str) -> PlanEntry:
        state = self._kept.of_call(key) or (self._kept.value or PlanState(planning=True) if self.planning else None)
        if state is None:
            state = PlanState(planning=True, since=self._kept.step, again=bool(self.text().strip()))
            await self._kept.keep(key, state)
        self._policy.session.enter_plan(self._file)
        return PlanEntry(file=str(self._file), again=state.again)

    def text(self) -> str:
        try:
            with self._file.open("r", encoding="utf-8", errors="replace") as file:
                return file.read(MAX_PLAN)
        except OSError:
            return ""

    async def ask(self, plan: str) -> PlanVerdict:
        if self._human is None:
            return PlanVerdict(approved=False, feedback=_NOBODY)
        verdict = await self._human.approve(plan)
        if verdict.approved and verdict.plan is not None and verdict.plan != plan:
            await in_thread(self._write, verdict.plan)
        return verdict

    def _write(self, plan: str) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.write_text(plan, "utf-8", errors="replace")
        except OSError as error:
            raise ToolError(f"The changed plan cannot be written to {self._file}: {error.strerror}.") from None

    async def leave(self, key: str) -> None:
        if self.planning:
            await self._kept.keep(key, PlanState(planning=False))
            self._policy.session.leave_plan(self._after)

    def reminder(self, request: int) -> str:
        """What is said beside that request. Who asked to plan has just been told all."""
        if not self.planning:
            return ""
        state = self._kept.value
        since = request - (state.since if state is not None else 0)
        return "" if state is not None and since <= 1 else planning.reminder(str(self._file), since)
