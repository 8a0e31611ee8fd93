"""Who looks on sees completed inputs; what the model is sent is the same, byte for byte, with and without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retinue.agents import assemble
from retinue.agents.model.messages import ToolUseBlock
from retinue.agents.model.port import ModelRequest
from retinue.agents.records import AgentRecord, ToolFinished
from retinue.tools.base import AnyTool, ToolContext, ToolData, ToolInput
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.files.read.tool import Read
from retinue.tools.render.calls import SeenCall, shown
from retinue.tools.render.plain import as_text
from support.agents_scene import Answers, Scene, a_boot, answer, prompt, until_idle


class Watcher:
    """A hook before and after calls that remembers what it saw."""

    def __init__(self) -> None:
        self.inputs: list[object] = []

    async def opinion(self, tool: AnyTool, args: ToolInput, ctx: ToolContext) -> None:
        self.inputs.append(args.model_dump(exclude_unset=True))

    async def succeeded(
        self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult, data: ToolData
    ) -> None:
        self.inputs.append(args.model_dump(exclude_unset=True))

    async def failed(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult) -> None:
        raise AssertionError(result.content)


class Blind(Read):
    """Read, that completes nothing for those who look on."""

    def backfill_observable_input(self, args: ToolInput, ctx: ToolContext) -> ToolInput:  # type: ignore[override]
        return args


async def work(root: Path, tool: AnyTool, monkeypatch: pytest.MonkeyPatch, watcher: Watcher | None) -> Scene:
    if watcher is not None:
        watched = watcher

        def with_watcher(*args: object, **more: object) -> Pipeline:
            return replace(Pipeline(*args, **more), opinions=(watched,), afterwards=(watched,))  # type: ignore[arg-type]

        monkeypatch.setattr(assemble, "Pipeline", with_watcher)
    reads = [ToolUseBlock(id=f"t{n}", name="Read", input={"file_path": "a.txt", "limit": str(n)}) for n in (1, 2)]
    workspace = {"root": str(root), "isolation": "none"}
    scene = Scene(Answers([answer(*reads), answer("Done.")]), boot=a_boot(workspace=workspace, run_dir=str(root)))
    scene.world.tools = lambda: (tool,)  # type: ignore[method-assign]
    scene.stored(prompt())
    await until_idle(scene)
    monkeypatch.undo()
    return scene


def sent(scene: Scene) -> list[bytes]:
    assert isinstance(scene.model, Answers)
    requests: list[ModelRequest] = scene.model.requests
    return [request.model_dump_json().encode() for request in requests]


def finished(records: list[AgentRecord]) -> list[CallResult]:
    return [record.result for record in records if isinstance(record, ToolFinished)]


async def test_requests_are_the_same_bytes_with_and_without_observers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    watcher = Watcher()
    plain = await work(tmp_path, Blind(), monkeypatch, None)
    watched = await work(tmp_path, Read(), monkeypatch, watcher)
    assert sent(plain) == sent(watched)
    assert len(sent(plain)) == 2
    assert '"a.txt"' in sent(watched)[1].decode()
    assert watcher.inputs.count({"file_path": str(tmp_path / "a.txt"), "limit": 1}) == 2


async def test_viewers_see_the_completed_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    scene = await work(tmp_path, Read(), monkeypatch, None)
    result = finished(scene.ledger.records)[0]
    assert result.observed == {"file_path": str(tmp_path / "a.txt"), "limit": 1}
    seen = SeenCall("Read", {"file_path": "a.txt", "limit": "1"}, result)
    assert as_text(shown(seen, {"Read": Read()}.get)).startswith(f"Read {tmp_path}/a.txt")
