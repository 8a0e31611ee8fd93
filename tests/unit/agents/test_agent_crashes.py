"""An agent that dies at any of its records goes on as if it had not; nothing unsafe happens twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from retinue.agents.boot import AgentStatus
from retinue.agents.history import Conversation, unpaired
from retinue.agents.loop import AgentLoop
from retinue.agents.mail.envelopes import Envelope, ShutdownRequest
from retinue.agents.model.messages import ToolUseBlock
from retinue.agents.records import RequestSent, TurnClosed
from support.agents_scene import Died, MemoryLedger, Scene, World, mail, prompt, scripted

SCRIPT = """
- say: I look first.
  calls:
    - Look: {text: a}
    - Look: {text: b}
    - Note: {text: one}
    - Tell: {text: hello}
    - Note: {text: two}
- fail: {kind: drop, block: 1}
  say: A failing group.
  calls:
    - Look: {text: c}
    - Run: {text: bad}
    - Note: {text: never}
- fail: {kind: drop, block: 3}
  say: Half of it breaks off.
  calls:
    - Look: {text: d}
    - Look: {text: e}
- say: The first part is done.
- wait_for: {mail_from: bob}
  say: Bob says so.
  calls:
    - Tell: {text: answer}
    - Note: {text: three}
- say: All is done.
"""
TEXTS = ["The first part is done.", "All is done.", ""]


def outside(agent: AgentLoop) -> tuple[asyncio.Queue[Envelope], OnStatus]:
    queue: asyncio.Queue[Envelope] = asyncio.Queue()
    return queue, OnStatus(queue)


class OnStatus:
    """Others, who write when the agent rests; who was not acknowledged writes again under the same id."""

    def __init__(self, queue: asyncio.Queue[Envelope]) -> None:
        self._queue = queue

    def __call__(self, status: AgentStatus) -> None:
        if status.state == "idle":
            self._queue.put_nowait(mail("m2", "go on") if status.turn < 2 else mail("m3", ShutdownRequest()))


async def one_life(scene: Scene) -> bool:
    """Whether the agent came to its own end."""
    agent = scene.agent()
    queue, scene.board.on = outside(agent)

    async def post() -> None:
        while True:
            await agent.deliver(await queue.get())

    running, posting = asyncio.create_task(agent.run()), asyncio.create_task(post())
    await asyncio.wait({running, posting}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if posting.done():
            running.cancel()
            await asyncio.wait({running})
            posting.result()
        running.result()
    except Died:
        return False
    finally:
        posting.cancel()
        await asyncio.wait({posting})
    return True


async def live(dies_after: list[int]) -> tuple[Scene, int]:
    """The whole scene, dead after so many records in each life; how many lives it took."""
    scene = Scene(scripted(SCRIPT)).stored(prompt())
    for lives, more in enumerate([*dies_after, None], start=1):
        records = scene.ledger.records
        scene.ledger = MemoryLedger(records, None if more is None else len(records) + more)
        scene.model = scripted(SCRIPT)
        if await one_life(scene):
            return scene, lives
    raise AssertionError("the scene did not end")


def check(scene: Scene) -> None:
    records = scene.ledger.records
    conversation = Conversation.of(records)
    assert unpaired(conversation.messages()) == []
    assert conversation.phase == "idle"
    assert [r.text for r in records if isinstance(r, TurnClosed)] == TEXTS
    assert [r.reason for r in records if isinstance(r, TurnClosed)] == ["done", "done", "shutdown"]
    processed = [name for r in records if isinstance(r, RequestSent) for name in r.mail]
    assert processed == ["p", "m2"]
    once_only(scene.world, conversation)


def once_only(world: World, conversation: Conversation) -> None:
    twice = [key for key, count in Counter(key for key, _ in world.notes).items() if count > 1]
    assert twice == []
    assert sorted(world.told.values()) == ["answer", "hello"]
    said = [text for _, text in world.notes]
    assert "never" not in said or not in_one_message(conversation, "bad", "never")
    shown = str(conversation.messages())
    for text in ("one", "two", "three", "run bad"):
        assert said.count(text) == 1 or "outcome unknown" in shown
    assert set(world.looks) == {"a", "b", "c", "d", "e"}


def in_one_message(conversation: Conversation, *texts: str) -> bool:
    """A message that breaks off is gone on with in another; what comes then is no sibling any more."""
    inputs = [
        {block.input["text"] for block in message.content if isinstance(block, ToolUseBlock)}
        for message in conversation.messages()
    ]
    return any(set(texts) <= each for each in inputs)


async def test_the_scene_ends_as_it_should_without_any_death() -> None:
    scene, lives = await live([])
    check(scene)
    assert lives == 1
    assert [text for _, text in scene.world.notes] == ["one", "two", "run bad", "three"]
    assert scene.kinds()[-1] == "turn_closed"


async def test_a_death_at_any_record_changes_nothing() -> None:
    whole, _ = await live([])
    for more in range(len(whole.ledger.records)):
        scene, lives = await live([more])
        assert lives == 2, more
        check(scene)


@pytest.mark.parametrize("second", [0, 1, 3])
async def test_a_second_death_right_after_the_first_changes_nothing(second: int) -> None:
    whole, _ = await live([])
    for more in range(0, len(whole.ledger.records), 3):
        scene, _ = await live([more, second])
        check(scene)


async def test_a_process_that_is_cancelled_leaves_what_a_crash_would_leave() -> None:
    scene = Scene(scripted(SCRIPT)).stored(prompt())
    scene.world.gates["bad"] = asyncio.Event()
    running = asyncio.create_task(scene.agent().run())
    await scene.world.begun.setdefault("bad", asyncio.Event()).wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    left = Conversation.of(scene.ledger.records)
    assert left.phase == "acting"
    assert left.open is not None
    assert len(left.open.started) == len(left.open.finished) + 1
    scene.world.gates.clear()
    scene.model = scripted(SCRIPT)
    assert await one_life(scene)
    check(scene)
