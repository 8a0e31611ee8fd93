"""A run's records told as lines: calls in a row as one, and each call as its tool shows it."""

from __future__ import annotations

from collections.abc import Iterable

from retinue.agents.model.messages import TextBlock, ToolUseBlock, Usage
from retinue.agents.records import BlockComplete, MessageClosed, StepClosed, ToolFinished, ToolStarted
from retinue.orchestrator.ledger.parse import AnyRecord
from retinue.orchestrator.view.narrate import Narrator, Told
from retinue.tools.execution.calls import CallResult
from retinue.tools.render.plain import as_text


def says(text: str) -> AnyRecord:
    return BlockComplete(turn=1, step=1, index=0, block=TextBlock(text=text))


def calls(*named: tuple[str, str], step: int = 1, fails: bool = False) -> list[AnyRecord]:
    """One message with these calls, as (tool, file), and their results."""
    blocks = [ToolUseBlock(id=f"c{step}{i}", name=n, input={"file_path": f}) for i, (n, f) in enumerate(named)]
    results = [
        CallResult(
            call_id=block.id, name=n, content="no" if fails else "1\tx", is_error=fails, ran=True, title=f"{n} {f}"
        )
        for block, (n, f) in zip(blocks, named, strict=True)
    ]
    return [
        *(BlockComplete(turn=1, step=step, index=i, block=block) for i, block in enumerate(blocks)),
        MessageClosed(turn=1, step=step, stop_reason="tool_use", usage=Usage(), model="m"),
        *(ToolStarted(turn=1, step=step, call_id=b.id, tool=b.name, read_only=True) for b in blocks),
        *(ToolFinished(turn=1, step=step, result=result) for result in results),
        StepClosed(turn=1, step=step, checkpoint=None),
    ]


def told(records: Iterable[tuple[str, AnyRecord]]) -> list[Told]:
    narrator = Narrator()
    found = [each for at, (writer, record) in enumerate(records) for each in narrator.take(writer, float(at), record)]
    return [*found, *narrator.rest()]


def lines(*records: AnyRecord, writer: str = "ada~1") -> list[str]:
    return [each.line.text for each in told((writer, record) for record in records)]


def test_reads_in_a_row_are_one_line_also_over_several_messages() -> None:
    reads = [*calls(("Read", "a"), ("Read", "b"), ("Read", "c")), *calls(("Read", "d"), ("Read", "e"), step=2)]
    assert lines(*reads, says("done")) == ["Read 5 files: a, b, c, …", "says: done"]


def test_one_call_keeps_its_title_and_what_is_not_grouped_stays_apart() -> None:
    assert lines(*calls(("Read", "a"))) == ["Read a"]
    assert lines(*calls(("Write", "a"), ("Write", "b"))) == ["Write a", "Write b"]
    assert lines(*calls(("Read", "a"), ("Write", "b"), ("Read", "c"))) == ["Read a", "Write b", "Read c"]


def test_what_failed_and_what_is_said_between_ends_a_row() -> None:
    failed = calls(("Read", "b"), step=2, fails=True)
    assert lines(*calls(("Read", "a")), *failed, *calls(("Read", "c"), step=3)) == [
        "Read a",
        "Read b failed: no",
        "Read c",
    ]
    assert lines(*calls(("Read", "a")), says("hm"), *calls(("Read", "c"), step=2)) == ["Read a", "says: hm", "Read c"]


def test_the_calls_of_one_agent_do_not_mix_with_those_of_another() -> None:
    ada, bob = (calls(("Read", "a"), ("Read", "b")) for _ in range(2))
    mixed = [pair for a, b in zip(ada, bob, strict=True) for pair in (("ada~1", a), ("bob~1", b))]
    assert [(each.line.who, each.line.text) for each in told(mixed)] == [
        ("ada", "Read 2 files: a, b"),
        ("bob", "Read 2 files: a, b"),
    ]


def test_in_full_a_call_is_what_its_tool_shows() -> None:
    (each,) = told(("ada~1", record) for record in calls(("Read", "a")))
    assert as_text(each.blocks) == "Read a\n  1\tx"


def test_a_call_of_a_tool_that_nobody_knows_here_is_told_by_its_title() -> None:
    (each,) = told(("ada~1", record) for record in calls(("mcp__a__x", "a")))
    assert (each.line.text, as_text(each.blocks)) == ("mcp__a__x a", "mcp__a__x a\n  1\tx")
