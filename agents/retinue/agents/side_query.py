"""Implements `SideQueryPort`: one question to the agent's own model, beside its conversation and at its cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from retinue.agents.boot import AgentBoot
from retinue.agents.model.messages import TextBlock, Usage, UserMessage
from retinue.agents.model.port import BlockDone, Broken, MessageDone, ModelPort, ModelRequest
from retinue.tools.errors import ToolError


@dataclass(slots=True)
class ModelSideQuery:
    """What it costs is told to the budget along with the next request of the conversation."""

    model: ModelPort
    boot: AgentBoot
    _spent: Usage = field(default_factory=Usage)
    _told: dict[int, Usage] = field(default_factory=dict[int, Usage])

    async def ask(self, prompt: str, *, system: str = "", max_tokens: int = 4_096) -> str:
        """No tools, no history, no second attempt: whoever asks does without an answer."""
        request = ModelRequest(
            run=self.boot.run,
            agent=f"{self.boot.name}/side",
            model=self.boot.model,
            system=system,
            messages=(UserMessage(content=(TextBlock(text=prompt),)),),
            max_tokens=max_tokens,
        )
        said: list[str] = []
        async for event in self.model.stream(request):
            match event:
                case BlockDone(block=TextBlock(text=text)):
                    said.append(text)
                case MessageDone(usage=usage):
                    self._spent += usage
                case Broken(message=why):
                    raise ToolError(f"the model gave no answer beside the conversation: {why}")
                case _:
                    pass
        if not said:
            raise ToolError("the model gave no answer beside the conversation")
        return "".join(said)

    def spent(self, step: int) -> Usage:
        """What came up since the request before; the same for the same step, however often it is asked."""
        if step not in self._told:
            self._told = {step: self._spent}
            self._spent = Usage()
        return self._told[step]
