"""An image that a tool read, from the file to the body that a server gets: through pipeline, ledger and history."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from retinue.agents.history import Conversation
from retinue.agents.model.anthropic_client import AnthropicModel
from retinue.agents.model.messages import TextBlock, ToolResultBlock, ToolUseBlock, Usage
from retinue.agents.model.port import ModelRequest
from retinue.agents.records import (
    AGENT_RECORD,
    AgentRecord,
    BlockComplete,
    MessageClosed,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
)
from retinue.orchestrator.ledger.parse import body_of, parse_agent_record
from retinue.tools.execution.calls import CallResult
from retinue.tools.files.read.tool import Read
from support.calls import Surroundings, call, context, pipeline, run
from support.model_server import a_server

pytestmark = pytest.mark.live


def saved(width: int = 300, colour: str = "red") -> bytes:
    out = BytesIO()
    Image.new("RGB", (width, 200), colour).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
async def result(tmp_path: Path) -> CallResult:
    (tmp_path / "plot.png").write_bytes(saved())
    line = pipeline(Read(), around=Surroundings(), folder=tmp_path / "results")
    return await run(line, call("Read", file_path="plot.png"), context(tmp_path))


def conversation(result: CallResult) -> Conversation:
    """Folded from records as the ledger gives them back."""
    records: list[AgentRecord] = [
        RequestSent(turn=1, step=1, input=(TextBlock(text="Go."),)),
        BlockComplete(
            turn=1, step=1, index=0, block=ToolUseBlock(id="c1", name="Read", input={"file_path": "plot.png"})
        ),
        MessageClosed(turn=1, step=1, stop_reason="tool_use", usage=Usage(), model="m"),
        ToolStarted(turn=1, step=1, call_id="c1", tool="Read", read_only=True),
        ToolFinished(turn=1, step=1, result=result),
        StepClosed(turn=1, step=1),
    ]
    read = [parse_agent_record(*body_of(record)) for record in records]
    return Conversation.of([record for record in read if record is not None])


async def sent(talk: Conversation) -> object:
    request = ModelRequest(run="r", agent="a", model="anthropic:m", system="", messages=talk.messages())
    async with a_server(400, b"{}", {}) as (url, asked):
        model = AnthropicModel("m", base_url=url, api_key="k")
        async for _ in model.stream(request):
            pass
        await model.aclose()
    block = json.loads(asked[0].body)["messages"][-1]["content"][0]
    block.pop("cache_control")
    return block


async def test_the_record_of_an_image_is_small_and_holds_none_of_its_bytes(result: CallResult) -> None:
    (medium,) = result.media
    assert Path(medium.path).read_bytes() == saved()
    record = AGENT_RECORD.dump_json(ToolFinished(turn=1, step=1, result=result))
    assert len(record) < 1_500
    assert base64.b64encode(saved())[:40] not in record


async def test_the_server_gets_the_image_behind_the_words(result: CallResult) -> None:
    assert await sent(conversation(result)) == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [
            {"type": "text", "text": result.content},
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": base64.b64encode(saved()).decode(),
                },
            },
        ],
    }


async def test_an_image_that_somebody_changed_is_named_and_not_sent(result: CallResult) -> None:
    Path(result.media[0].path).write_bytes(saved(colour="blue"))
    block = await sent(conversation(result))
    assert isinstance(block, dict)
    assert [part["type"] for part in block["content"]] == ["text", "text"]
    assert "not shown any more" in block["content"][1]["text"]


async def test_the_size_of_the_context_counts_the_image(result: CallResult) -> None:
    with_image = conversation(result).context_tokens
    without = conversation(result.model_copy(update={"media": ()})).context_tokens
    assert with_image - without == 80 == result.media[0].tokens


async def test_a_result_that_cannot_be_kept_says_so(tmp_path: Path) -> None:
    (tmp_path / "plot.png").write_bytes(saved())
    (tmp_path / "results").touch()
    line = pipeline(Read(), around=Surroundings(), folder=tmp_path / "results")
    result = await run(line, call("Read", file_path="plot.png"), context(tmp_path))
    assert "could not be kept" in result.content
    assert not result.is_error
    assert result.media == ()


def test_a_ledger_from_before_images_is_still_read() -> None:
    old = {"turn": 1, "step": 1, "result": {"call_id": "c", "name": "Read", "content": "x"}}
    record = parse_agent_record("tool_finished", old)
    assert isinstance(record, ToolFinished)
    assert record.result.media == ()
    assert ToolResultBlock(tool_use_id="c", content="x").media == ()
