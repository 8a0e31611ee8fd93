"""An agent replaces a stretch of its own conversation by a note."""

from __future__ import annotations

import pytest

from retinue.agents.history import Conversation, unpaired
from retinue.agents.model.messages import Message, TextBlock, ToolResultBlock, ToolUseBlock
from retinue.agents.records import HistorySnipped, ToolFinished
from retinue.tools.system.snip.tool import Snip
from support.agents_scene import Answers, Scene, a_boot, answer, mail, prompt, until_idle, use


def snip(oldest: int, newest: int, note: str = "a.py is done", call: str = "s1") -> ToolUseBlock:
    return ToolUseBlock(id=call, name="Snip", input={"oldest": oldest, "newest": newest, "note": note})


def scene_of(*messages: ToolUseBlock) -> Scene:
    scene = Scene(Answers([*(answer(message) for message in messages), answer("Done.")]), boot=a_boot())
    tools = (*scene.world.tools(), Snip())
    scene.world.tools = lambda: tools  # type: ignore[method-assign]
    return scene.stored(prompt("Mend it."))


def asked(scene: Scene) -> list[tuple[Message, ...]]:
    assert isinstance(scene.model, Answers)
    return [request.messages for request in scene.model.requests]


def texts(messages: tuple[Message, ...]) -> str:
    return "\n".join(
        block.text if isinstance(block, TextBlock) else block.content
        for message in messages
        for block in message.content
        if isinstance(block, TextBlock | ToolResultBlock)
    )


def looks(count: int) -> list[ToolUseBlock]:
    return [use("Look", f"t{n}", str(n) * 400) for n in range(1, count + 1)]


async def test_the_stretch_is_gone_from_the_next_request_and_its_note_stands_there() -> None:
    scene = scene_of(*looks(3), snip(3, 2))
    await until_idle(scene)
    before, after = asked(scene)[3], asked(scene)[4]
    assert (len(before), len(after)) == (7, 5)
    said = texts(after)
    assert "Mend it." in said
    assert "[Here were 2 exchanges, replaced by this note of yours: a.py is done]" in said
    assert "seen 1" not in said
    assert "seen 2" not in said
    assert "seen 3" in said
    assert unpaired(after) == []


async def test_what_was_freed_is_told_and_a_new_process_has_the_same_conversation() -> None:
    scene = scene_of(*looks(2), snip(2, 1))
    await until_idle(scene)
    (record,) = [r for r in scene.ledger.records if isinstance(r, HistorySnipped)]
    again = Conversation.of(scene.ledger.records)
    assert again.messages()[:-1] == asked(scene)[-1]
    assert 300 < again.snips[record.key] < 500
    told = [r.result.content for r in scene.ledger.records if isinstance(r, ToolFinished)]
    assert told[-1] == f"2 exchanges replaced by the note; about {again.snips[record.key]} tokens are freed."


async def test_what_others_said_in_the_stretch_stays() -> None:
    scene = scene_of(*looks(2), snip(2, 1))
    scene.stored(mail("m1", "mind the tests"))
    await until_idle(scene)
    assert "mind the tests" in texts(asked(scene)[-1])


@pytest.mark.parametrize("oldest", [3, 100])
async def test_a_stretch_that_is_longer_than_the_conversation_is_refused(oldest: int) -> None:
    scene = scene_of(*looks(2), snip(oldest, 1))
    await until_idle(scene)
    assert "There are only 2 exchanges so far: `oldest` is 2 at most." in texts(asked(scene)[-1])
    assert not [r for r in scene.ledger.records if isinstance(r, HistorySnipped)]


async def test_two_stretches_after_each_other_leave_two_notes() -> None:
    scene = scene_of(*looks(2), snip(1, 1, "second"), snip(2, 2, "first", call="s2"))
    await until_idle(scene)
    last = asked(scene)[-1]
    assert unpaired(last) == []
    assert "note of yours: second" in texts(last)
    assert "note of yours: first" in texts(last)
    assert "seen" not in texts(last)
