"""Images and documents on their way to a model."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from retinue.agents.model.anthropic_request import body_of
from retinue.agents.model.media import chosen, load
from retinue.agents.model.messages import AssistantMessage, Message, ToolResultBlock, ToolUseBlock, UserMessage
from retinue.agents.model.port import ModelRequest
from retinue.agents.model.serve_wire import request_of
from retinue.tools.base import Attachment
from retinue.tools.execution.calls import Media
from retinue.tools.results.store import ResultStore


def medium(name: str, size: int = 10, media_type: str = "image/png") -> Media:
    return Media(media_type=media_type, path=f"/r/{name}", digest=name, size=size, tokens=5)


def said(*media: Media, is_error: bool = False, text: str = "seen") -> tuple[Message, ...]:
    return (
        AssistantMessage(content=(ToolUseBlock(id="c", name="Read"),)),
        UserMessage(content=(ToolResultBlock(tool_use_id="c", content=text, media=media, is_error=is_error),)),
    )


def sent(*media: Media, loaded: dict[str, str], is_error: bool = False) -> object:
    request = ModelRequest(run="r", agent="a", model="m", system="", messages=said(*media, is_error=is_error))
    messages = body_of(request, "m", loaded)["messages"]
    assert isinstance(messages, list)
    assert isinstance(messages[-1], dict)
    content = messages[-1]["content"]
    assert isinstance(content, list)
    assert isinstance(content[0], dict)
    return content[0]["content"]


def test_images_and_documents_follow_the_text_of_their_result() -> None:
    parts = (medium("i"), medium("d", media_type="application/pdf"), medium("gone"))
    assert sent(*parts, loaded={"i": "AA==", "d": "BB=="}) == [
        {"type": "text", "text": "seen"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BB=="}},
        {"type": "text", "text": "[image/png of 10 bytes: not shown any more]"},
    ]


def test_an_error_is_text_alone_as_the_wire_demands() -> None:
    assert sent(medium("i"), loaded={"i": "AA=="}, is_error=True) == "seen"
    assert chosen(said(medium("i"), is_error=True)) == ()


def test_the_newest_media_go_along_and_the_older_half_is_dropped_at_once() -> None:
    media = [medium(f"{n}") for n in range(12)]
    kept = [tuple(int(m.digest) for m in chosen(said(*media[:count]), most_bytes=50)) for count in range(1, 13)]
    assert kept[:5] == [tuple(range(n)) for n in range(1, 6)]
    assert kept[5] == (4, 5)
    assert kept[8] == (4, 5, 6, 7, 8)
    assert kept[9] == (8, 9)
    assert len(chosen(said(*media), most=4)) <= 4


def test_one_that_is_alone_too_large_is_still_shown() -> None:
    assert chosen(said(medium("big", 1_000)), most_bytes=50) == (medium("big", 1_000),)


def test_bytes_are_loaded_and_what_was_changed_since_is_not(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    good = store.keep(Attachment("image/png", b"png", 5))
    bad = store.keep(Attachment("image/jpeg", b"jpeg", 5))
    Path(bad.path).write_bytes(b"evil")
    gone = store.keep(Attachment("image/../gif", b"gif", 5))
    assert Path(gone.path).parent == tmp_path
    Path(gone.path).unlink()
    assert load((good, bad, gone, good)) == {good.digest: base64.b64encode(b"png").decode()}
    assert good.digest == hashlib.sha256(b"png").hexdigest()


def test_a_link_is_never_followed_to_load(tmp_path: Path) -> None:
    kept = ResultStore(tmp_path).keep(Attachment("image/png", b"png", 5))
    Path(kept.path).rename(tmp_path / "moved")
    Path(kept.path).symlink_to(tmp_path / "moved")
    assert load((kept,)) == {}


def test_a_served_script_reads_the_text_of_a_result_with_an_image() -> None:
    request = ModelRequest(run="r", agent="a", model="m", system="", messages=said(medium("i")))
    served, _ = request_of(json.dumps(body_of(request, "m", {"i": "AA=="})).encode())
    block = served.messages[-1].content[0]
    assert isinstance(block, ToolResultBlock)
    assert (block.content, block.media) == ("seen", ())
