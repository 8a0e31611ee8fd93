"""Questions beside a conversation: asked of the small model, counted, recorded, and answered by scripts and replays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from retinue.agents.history import Conversation
from retinue.agents.journal import Journal
from retinue.agents.model.anthropic_request import body_of
from retinue.agents.model.anthropic_stream import StreamFold
from retinue.agents.model.messages import TextBlock, Usage, UserMessage
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    ModelRequest,
    SearchFound,
    StreamEvent,
    digest_of,
)
from retinue.agents.model.replay import RecordedAnswer, RecordedSide, ReplayModel
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.scripted import ScriptedModel
from retinue.agents.model.serve_wire import request_of
from retinue.agents.records import SideAnswered
from retinue.agents.side import SideQuestions
from retinue.tools.errors import SpecError, ToolError
from retinue.tools.ports import SearchHit, SearchQuery
from support.agents_scene import MemoryLedger, Purse, a_boot

pytestmark = pytest.mark.asyncio

USED = Usage(input=7, output=2)
HIT = SearchHit(title="Docs", url="https://docs.example.org")
SCRIPT = """\
version: 1
side:
  - {matches: 'Which version', say: It is 2.1., usage: {output: 9}}
  - {matches: '^second line', say: Lines count.}
agents:
  ada: [{say: hello}]
"""


class Model:
    """Gives each request the next of its answers."""

    def __init__(self, *answers: Sequence[StreamEvent]) -> None:
        self.answers = list(answers)
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.asked.append(request)
        for event in self.answers.pop(0):
            yield event


def said(text: str) -> list[StreamEvent]:
    return [BlockDone(index=0, block=TextBlock(text=text)), MessageDone(stop_reason="end_turn", usage=USED)]


class Scene:
    def __init__(self, model: Any, *refusals: str, small: str = "", deadline_s: float = 60.0) -> None:
        self.ledger = MemoryLedger()
        self.conversation = Conversation()
        self.purse = Purse(list(refusals))
        journal = Journal(self.ledger, self.conversation, lambda _: None)
        whose = a_boot().model_copy(update={"small_model": small})
        self.waited: list[float] = []
        self.side = SideQuestions(
            whose, model, self.purse, journal, deadline_s=deadline_s, sleep=self._sleep, chance=lambda: 0.0
        )

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    @property
    def record(self) -> SideAnswered:
        (found,) = self.ledger.records
        assert isinstance(found, SideAnswered)
        return found


async def test_a_question_goes_alone_to_the_small_model():
    model = Model(said("The title."))
    scene = Scene(model, small="script:small")
    assert await scene.side.ask("What is it?", system="Be brief.", max_tokens=50) == "The title."
    (request,) = model.asked
    assert (request.model, request.side, request.tools, request.max_tokens) == ("script:small", True, (), 50)
    assert request.messages == (UserMessage(content=(TextBlock(text="What is it?"),)),)


async def test_without_a_small_model_the_agent_s_own_is_asked():
    model = Model(said("x"))
    await Scene(model).side.ask("q")
    assert model.asked[0].model == a_boot().model


async def test_what_was_used_is_reserved_settled_recorded_and_counted():
    scene = Scene(Model(said("yes")))
    await scene.side.ask("q", max_tokens=50)
    ((_, tokens, _),) = scene.purse.asked
    assert tokens > 50
    assert scene.purse.settled == [("1.1", a_boot().model, USED)]
    assert (scene.record.text, scene.record.usage) == ("yes", USED)
    assert (scene.conversation.usage, scene.conversation.last_usage) == (USED, Usage())


async def test_without_budget_nobody_is_asked():
    model = Model()
    with pytest.raises(ToolError, match="the run has used 9 of its 9 tokens"):
        await Scene(model, "the run has used 9 of its 9 tokens").side.ask("q")
    assert model.asked == []


async def test_a_busy_server_is_asked_again_and_a_refusal_is_not():
    busy = [Broken(reason="overloaded", message="busy")]
    scene = Scene(Model(busy, busy, said("at last")))
    assert await scene.side.ask("q") == "at last"
    assert scene.waited == [0.5, 1.0]
    refused = Scene(Model([Broken(reason="invalid_request", message="too long")]))
    with pytest.raises(ToolError, match="too long"):
        await refused.side.ask("q")
    assert refused.purse.settled == [("1.1", a_boot().model, Usage())]


async def test_a_model_that_never_answers_is_given_up_and_paid_for_nothing():
    class Silent:
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            await asyncio.Event().wait()
            yield Broken(reason="dropped", message="")

    scene = Scene(Silent(), deadline_s=0.01)
    with pytest.raises(ToolError, match="did not answer within"):
        await scene.side.ask("q")
    assert scene.purse.settled == [("1.1", a_boot().model, Usage())]


async def test_a_call_that_is_called_off_gives_its_reservation_back():
    begun = asyncio.Event()

    class Slow:
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            begun.set()
            await asyncio.Event().wait()
            yield Broken(reason="dropped", message="")

    scene = Scene(Slow())
    asking = asyncio.create_task(scene.side.ask("q"))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert scene.purse.settled == [("1.1", a_boot().model, Usage())]


async def test_a_search_of_the_provider_is_one_request_with_its_hits():
    model = Model([SearchFound(hits=(HIT,)), *said("Found it.")])
    scene = Scene(model)
    answer = await scene.side.server_search(SearchQuery(query="retinue", allowed_domains=("example.org",)))
    assert (answer.hits, answer.text, scene.record.hits) == ((HIT,), "Found it.", (HIT,))
    body = body_of(model.asked[0], "m")
    assert body["tools"] == [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8, "allowed_domains": ["example.org"]}
    ]


async def test_a_search_that_fails_says_why():
    scene = Scene(Model([SearchFound(failed="too_many_requests"), *said("")]))
    with pytest.raises(ToolError, match="too_many_requests"):
        await scene.side.server_search(SearchQuery(query="retinue"))


def made(value: Any) -> Any:
    """Objects with attributes, as the library builds them."""
    return json.loads(json.dumps(value), object_hook=lambda found: SimpleNamespace(**found))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (
            [{"type": "web_search_result", "title": "Docs", "url": "https://docs.example.org"}],
            SearchFound(hits=(HIT,)),
        ),
        ([], SearchFound()),
        (
            {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            SearchFound(failed="max_uses_exceeded"),
        ),
    ],
)
async def test_the_results_of_the_provider_are_read_from_the_stream(content: object, found: SearchFound):
    block = {"type": "web_search_tool_result", "tool_use_id": "s", "content": content}
    event = made({"type": "content_block_start", "index": 1, "content_block": block})
    assert list(StreamFold("m").feed(event)) == [found]


def question(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(
        run="r",
        agent="ada",
        model="m",
        system="",
        messages=(UserMessage(content=(TextBlock(text=text),)),),
        side=True,
        **more,
    )


async def heard(model: Any, request: ModelRequest) -> list[StreamEvent]:
    return [event async for event in model.stream(request)]


@pytest.mark.parametrize(
    ("text", "says"), [("Which version is it?", "It is 2.1."), ("first\nsecond line", "Lines count.")]
)
async def test_a_script_answers_by_what_it_finds_in_the_question(text: str, says: str):
    model = ScriptedModel(parse_script(SCRIPT))
    for _ in range(2):
        *events, last = await heard(model, question(text))
        assert BlockDone(index=0, block=TextBlock(text=says)) in events
        assert isinstance(last, MessageDone)


async def test_a_question_takes_no_turn_of_the_script():
    model = ScriptedModel(parse_script(SCRIPT))
    await heard(model, question("Which version?"))
    turn = question("go").model_copy(update={"side": False})
    assert BlockDone(index=0, block=TextBlock(text="hello")) in await heard(model, turn)


async def test_a_question_that_no_entry_fits_is_named():
    (broken,) = await heard(ScriptedModel(parse_script(SCRIPT), "s.yaml"), question("What else?"))
    assert isinstance(broken, Broken)
    assert (broken.reason, broken.message) == (
        "not_found",
        "s.yaml has no answer under side to the question that ends in 'What else?'; add one",
    )


async def test_a_script_has_no_search_of_its_own():
    (broken,) = await heard(ScriptedModel(parse_script(SCRIPT)), question("x", search=SearchQuery(query="retinue")))
    assert isinstance(broken, Broken)
    assert "has no search of its own" in broken.message


async def test_a_wrong_key_of_a_side_entry_is_named_with_the_right_ones():
    with pytest.raises(SpecError, match=r"s.yaml:3: side\[0\].match: no such key; did you mean matches\?"):
        parse_script("version: 1\nside:\n  - {match: x, say: y}\nagents: {a: [{say: x}]}\n", "s.yaml")


async def test_a_served_script_knows_a_question_beside_the_conversation():
    sent = body_of(question("Which version?"), "m")
    request, _ = request_of(json.dumps(sent).encode())
    assert (request.agent, request.side) == ("ada", True)


class Recorded:
    def __init__(self, *sides: RecordedSide) -> None:
        self._sides = sides

    def answers(self, agent: str) -> Sequence[RecordedAnswer]:
        return ()

    def sides(self, agent: str) -> Sequence[RecordedSide]:
        return self._sides


async def test_a_replay_gives_each_question_its_answer_and_a_changed_one_the_next():
    one, two = question("one"), question("two")
    model = ReplayModel(Recorded(RecordedSide(digest_of(one), "1", USED), RecordedSide(digest_of(two), "2", USED)))
    assert BlockDone(index=0, block=TextBlock(text="2")) in await heard(model, two)
    assert BlockDone(index=0, block=TextBlock(text="1")) in await heard(model, question("one, changed"))
    (broken,) = await heard(model, one)
    assert isinstance(broken, Broken)
    assert broken.reason == "expectation"
