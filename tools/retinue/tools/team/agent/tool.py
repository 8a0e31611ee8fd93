"""Agent: a sub-agent that works and answers."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    Decision,
    NameSubject,
    OnProgress,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.ports import ChildRequest
from retinue.tools.team.agent.constants import DEFAULT_DEFINITION
from retinue.tools.team.ports import connected, untrusted
from retinue.tools.text import one_line


class AgentInput(ToolInput):
    description: str = Field(description="The work in three to five words")
    prompt: str = Field(min_length=1, description="The work, with everything needed to do it")
    subagent_type: str = Field(DEFAULT_DEFINITION, description="Which kind of agent to start")
    model: str | None = Field(None, description="A model other than the kind's own")


class AgentOutput(ToolData):
    ok: bool
    text: str
    agent: str
    steps: int
    tool_calls: int
    tokens: int


class Agent(Tool[AgentInput, AgentOutput]):
    name = "Agent"
    aliases = ("Task",)
    group = "agents"
    needs = ("children",)
    search_hint = "start a sub-agent"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Start a sub-agent that works and answers"

    def traits(self, args: AgentInput) -> Traits:
        """Children may run side by side: each of their own calls asks for its lease."""
        return Traits(concurrency_safe=True)

    def subject(self, args: AgentInput, ctx: ToolContext) -> Subject:
        return NameSubject(args.subagent_type)

    def title(self, args: AgentInput) -> str:
        return f"Agent {one_line(args.subagent_type, 40)}: {one_line(args.description)}"

    async def check_permissions(self, args: AgentInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "a child's own calls are checked, with its parent's rights at most", "tool")

    async def call(self, args: AgentInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[AgentOutput]:
        request = ChildRequest(
            definition=args.subagent_type,
            description=args.description,
            prompt=args.prompt,
            model=args.model,
            planning=ctx.plan is not None and ctx.plan.planning,
        )
        outcome = await connected(ctx.children, "way to start sub-agents").run(ctx.key, request)
        output = AgentOutput(
            ok=outcome.ok,
            text=untrusted(outcome.text),
            agent=outcome.agent,
            steps=outcome.steps,
            tool_calls=outcome.tool_calls,
            tokens=outcome.tokens,
        )
        return ToolResult(output, is_error=not outcome.ok)

    def to_content(self, data: AgentOutput) -> str:
        counts = f"{data.steps} steps, {data.tool_calls} tool calls, {data.tokens} tokens"
        who = f"{data.agent}: " if data.agent else ""
        return f"{data.text or '(the sub-agent gave no result)'}\n\n[{who}{counts}]"
