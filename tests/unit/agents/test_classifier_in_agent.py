"""The classifier in a whole agent: asked where the user switched it on, heard where somebody would be asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import Rights, RuleSet
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.model.port import ModelRequest, StreamEvent
from retinue.agents.records import ToolFinished
from retinue.tools.base import OnProgress, Tool, ToolContext, ToolResult
from retinue.tools.execution.calls import CallResult
from retinue.tools.settings.model import ClassifierSettings, Settings
from support.agents_scene import FACTS, FreeLeases, Scene, a_boot, answer, prompt, until_idle, use
from support.calls import NoShell, Said, Words


class Push(Tool[Words, Said]):
    name = "Push"

    def description(self) -> str:
        return "Pushes"

    def classifier_input(self, args: Words) -> str:
        return args.text

    async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text="pushed"))

    def to_content(self, data: Said) -> str:
        return data.text


@dataclass
class Model:
    """Answers what is asked beside the conversation, and lets the agent push once."""

    guess: str
    turns: list[Sequence[StreamEvent]] = field(
        default_factory=lambda: [answer(use("Push", "c1", "to staging")), answer("Done.")]
    )
    beside: list[ModelRequest] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.side:
            self.beside.append(request)
        for event in answer(self.guess) if request.side else self.turns.pop(0):
            yield event


@dataclass
class Guessed(Scene):
    classifier: ClassifierSettings = field(default_factory=lambda: ClassifierSettings(enabled=True, allow=("staging",)))

    def agent(self) -> AgentLoop:
        return assemble_agent(
            self.boot,
            list(self.ledger.records),
            AgentPorts(self.model, self.ledger, self.purse, self.board, self.checkpoints),
            ToolPorts(FreeLeases(), NoShell()),
            FACTS,
            env={"HOME": "/home/nobody"},
            tools=(Push(),),
            timing=self.timing,
            settings=Settings(classifier=self.classifier),
        )

    def result(self) -> CallResult:
        (found,) = [record.result for record in self.ledger.records if isinstance(record, ToolFinished)]
        return found


def boot(**rules: tuple[str, ...]) -> object:
    return a_boot(rights=(Rights(rules=(RuleSet.model_validate({"source": "user", **rules}),)),))


@pytest.mark.parametrize(
    ("guess", "rules", "content"),
    [
        ('{"decision": "allow", "reason": "staging"}', {}, "pushed"),
        ('{"decision": "deny", "reason": "no"}', {}, "the classifier denies it: no"),
        ('{"decision": "ask"}', {}, "Nobody is there to be asked"),
        ("I cannot say.", {}, "Nobody is there to be asked"),
        ('{"decision": "allow"}', {"deny": ("Push",)}, "no such tool"),
        ('{"decision": "allow"}', {"ask": ("Push",)}, "the user rule Push wants to be asked about it"),
    ],
)
async def test_a_guess_stands_where_somebody_would_be_asked_and_against_no_rule(
    guess: str, rules: dict[str, tuple[str, ...]], content: str
) -> None:
    scene = Guessed(Model(guess), boot=boot(**rules)).stored(prompt())  # type: ignore[arg-type]
    await until_idle(scene)
    assert content.lower() in scene.result().content.lower()


async def test_it_is_off_where_nobody_switched_it_on() -> None:
    model = Model('{"decision": "allow"}')
    scene = Guessed(model, boot=boot(), classifier=ClassifierSettings()).stored(prompt())  # type: ignore[arg-type]
    await until_idle(scene)
    assert (model.beside, scene.result().denied) == ([], True)


async def test_what_it_costs_is_the_agents() -> None:
    model = Model('{"decision": "allow"}')
    scene = Guessed(model, boot=boot()).stored(prompt())  # type: ignore[arg-type]
    await until_idle(scene)
    assert len(model.beside) == len(scene.purse.settled) == 1
    assert '"to staging"' in str(model.beside[0].messages)
