"""Sub-agents: started for a call of their parent, in its workspace, with its rights; ended with a result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.agents.boot import AgentBoot, AgentLimits, Rights
from retinue.agents.definition import AgentDefinition
from retinue.agents.identity import child_id
from retinue.agents.mail.envelopes import TEAM, Envelope, Prompt
from retinue.agents.records import MailStored
from retinue.orchestrator.ledger.records import AgentEnded, MemberAdded
from retinue.orchestrator.runtime.port import AgentOutcome, ChildStarted
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.crew import Crew
from retinue.orchestrator.team.state import MemberState
from retinue.tools.ports import ChildOutcome, ChildRequest

MOST_DEPTH = 3
MOST_AT_ONCE = 20

Definitions = Callable[[str], AgentDefinition | None]


@dataclass(slots=True)
class Children:
    core: TeamCore
    crew: Crew
    definitions: Definitions
    ended: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    async def start(self, parent_id: str, key: str, request: ChildRequest) -> ChildStarted:
        """The same key finds the child that is already there, whatever became of its parent's process."""
        parent = self.core.state.members[parent_id].boot
        agent = child_id(key, parent.name)
        known = self.core.state.members.get(agent)
        if known is not None:
            if known.ended is None:
                await self.crew.man(known)
            return ChildStarted(ok=True, agent=agent)
        definition = self.definitions(request.definition)
        refusal = self._refusal(parent, request, definition)
        if refusal or definition is None:
            return ChildStarted(ok=False, text=refusal)
        boot = _boot(agent, parent, request, definition)
        prompt = Envelope(
            id=f"{agent}/prompt", sender=TEAM, recipient=agent, body=Prompt(text=request.prompt), causation=key
        )
        # Together: a child that is known and was never told what to do would be waited for without end.
        await self.core.record(MemberAdded(boot=boot.model_copy(update={"env": {}})), MailStored(envelope=prompt))
        await self.crew.man(self.core.state.members[agent])
        return ChildStarted(ok=True, agent=agent)

    def _refusal(self, parent: AgentBoot, request: ChildRequest, definition: AgentDefinition | None) -> str:
        if definition is None:
            return f"There is no agent definition {request.definition!r}."
        if parent.depth >= MOST_DEPTH:
            return f"Sub-agents nest {MOST_DEPTH} deep at most; do this part yourself."
        alive = [m for m in self.core.state.living() if m.boot.role == "child"]
        if len(alive) >= MOST_AT_ONCE:
            return f"{MOST_AT_ONCE} sub-agents are at work already; wait for one of them, or do this part yourself."
        return ""

    async def wait(self, child: str, wait_s: float) -> ChildOutcome | None:
        """Its outcome, or None when it is still at work after `wait_s` seconds."""
        member = self.core.state.members.get(child)
        if member is None:
            return ChildOutcome(ok=False, text=f"there is no sub-agent {child}", agent=child)
        if member.ended is None:
            event = self.ended.setdefault(child, asyncio.Event())
            try:
                async with asyncio.timeout(wait_s):
                    await event.wait()
            except TimeoutError:
                return None
        ended = member.ended
        if ended is None or ended.outcome is None:
            why = ended.why if ended is not None else "unknown"
            return ChildOutcome(ok=False, text=f"the sub-agent ended without a result: {why}", agent=child)
        return ended.outcome

    async def on_ended(self, member: MemberState, outcome: AgentOutcome, steps: int, tokens: int) -> None:
        agent = member.boot.agent
        result = ChildOutcome(
            ok=not outcome.lost and outcome.reason == "done",
            text=outcome.text or outcome.how,
            agent=agent,
            steps=steps,
            tokens=tokens,
        )
        await self.core.record(AgentEnded(agent=agent, why=outcome.reason or outcome.how, outcome=result))
        self.ended.setdefault(agent, asyncio.Event()).set()


def _boot(agent: str, parent: AgentBoot, request: ChildRequest, definition: AgentDefinition) -> AgentBoot:
    return parent.model_copy(
        update={
            "agent": agent,
            "name": agent.rsplit("~", 1)[0],
            "incarnation": 0,
            "role": "child",
            "parent": parent.agent,
            "depth": parent.depth + 1,
            "member": parent.member or parent.name,
            "definition": definition.name,
            "description": request.description,
            "prompt": definition.prompt,
            "hooks": definition.hooks,
            "model": request.model or definition.model or parent.model,
            "tools": parent.tools.model_copy(
                update={"allow": definition.tools, "deny": definition.disallowed_tools},
            ),
            "rights": rights_of(parent, request, definition),
            "limits": AgentLimits(),
            "workspace": parent.workspace,
        }
    )


def rights_of(parent: AgentBoot, request: ChildRequest, definition: AgentDefinition) -> tuple[Rights, ...]:
    """Those of its parent, of one that plans in the mode plan; a mode of its own can only take away from them."""
    rights = parent.rights
    if request.planning:
        rights = tuple(each.model_copy(update={"mode": "plan"}) for each in rights)
    if definition.mode is None or not rights or definition.mode == rights[0].mode:
        return rights
    return (rights[0].model_copy(update={"mode": definition.mode}), *rights)
