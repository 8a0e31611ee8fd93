"""The executor: calls run while the stream goes on, and each of them gets its result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallEnd, CallResult, ToolCall
from retinue.tools.execution.streaming import StreamingExecutor, run_all
from support.calls import UNSAFE, Scripted, context, result, settle


def asks(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="T")


def ids(results: tuple[CallResult, ...] | list[CallResult]) -> list[str]:
    return [each.call_id for each in results]


async def drain(executor: StreamingExecutor) -> list[CallResult]:
    return [each async for each in executor.results()]


async def test_a_call_starts_before_the_stream_ends() -> None:
    runner = Scripted()
    async with StreamingExecutor(runner, context()) as executor:
        executor.submit(asks("a"))
        await settle()
        assert runner.log == ["start a"]
        runner.end("a")
        results = executor.results()
        assert await anext(results) == result("a")
        executor.submit(asks("b"))
        await settle()
        runner.end("b")
        executor.end_of_stream()
        assert ids([each async for each in results]) == ["b"]


async def test_results_leave_in_the_order_of_the_calls_whoever_ends_first() -> None:
    runner = Scripted()
    async with StreamingExecutor(runner, context()) as executor:
        for call in "abc":
            executor.submit(asks(call))
        executor.end_of_stream()
        consumer = asyncio.create_task(drain(executor))
        await settle()
        for call in "cba":
            assert not consumer.done()
            runner.end(call)
            await settle()
        assert ids(await consumer) == ["a", "b", "c"]


async def test_who_waits_for_results_is_woken_by_the_end_of_the_stream() -> None:
    async with StreamingExecutor(Scripted(), context()) as executor:
        consumer = asyncio.create_task(drain(executor))
        await settle()
        executor.end_of_stream()
        assert await consumer == []


async def test_an_abort_stops_the_tasks_and_answers_every_call() -> None:
    runner = Scripted({"b": UNSAFE})
    async with StreamingExecutor(runner, context()) as executor:
        executor.submit(asks("a"))
        executor.submit(asks("b"))
        await settle()
        executor.abort("stopped")
        executor.submit(asks("c"))
        executor.end_of_stream()
        results = await drain(executor)
    assert [(r.call_id, r.ran, r.error_class) for r in results] == [
        ("a", True, "Aborted"),
        ("b", False, "Aborted"),
        ("c", False, "Aborted"),
    ]
    assert runner.log == ["start a", "cancel a"]


async def test_a_call_that_is_called_off_before_its_task_ran_is_answered() -> None:
    runner = Scripted()
    async with StreamingExecutor(runner, context()) as executor:
        executor.submit(asks("a"))
        executor.abort("at once")
        executor.end_of_stream()
        (end,) = await drain(executor)
    assert (end.ran, end.content) == (False, "Not run: the work was called off (at once).")
    assert runner.log == []


async def test_a_failed_group_ends_its_running_siblings() -> None:
    runner = Scripted()
    async with StreamingExecutor(runner, context()) as executor:
        for call in "abc":
            executor.submit(asks(call))
        executor.end_of_stream()
        await settle()
        runner.end("b", fails=True)
        results = await drain(executor)
    assert [(r.call_id, r.error_class) for r in results] == [("a", "SiblingFailed"), ("b", ""), ("c", "SiblingFailed")]


async def test_a_tool_that_ignores_its_cancellation_keeps_nobody_waiting_for_ever() -> None:
    runner = Scripted(ignores=frozenset("a"))
    executor = StreamingExecutor(runner, context(), settle_s=0.01)
    executor.submit(asks("a"))
    await settle()
    results = await executor.close("stopped")
    assert "may still be at work" in results[0].content
    assert executor.stuck == {"a"}
    runner.end("a")
    await settle()
    assert executor.stuck == frozenset()


async def test_a_tool_that_ends_properly_after_its_cancellation_is_believed() -> None:
    runner = Scripted(ignores=frozenset("a"))
    executor = StreamingExecutor(runner, context())
    executor.submit(asks("a"))
    await settle()
    closing = asyncio.create_task(executor.close("stopped"))
    await settle()
    runner.end("a")
    assert await closing == (result("a"),)


async def test_a_message_is_withdrawn_while_no_effect_began() -> None:
    runner = Scripted(begins=False)
    async with StreamingExecutor(runner, context()) as executor:
        executor.submit(asks("a"))
        await settle()
        assert executor.withdraw()
        assert [(r.ran, r.error_class) for r in await drain(executor)] == [(False, "Withdrawn")]


async def test_a_message_without_calls_is_withdrawn() -> None:
    async with StreamingExecutor(Scripted(), context()) as executor:
        assert executor.withdraw()
        assert await drain(executor) == []


async def test_a_message_whose_call_began_is_not_withdrawn_and_goes_on() -> None:
    runner = Scripted()
    async with StreamingExecutor(runner, context()) as executor:
        executor.submit(asks("a"))
        await settle()
        assert not executor.withdraw()
        executor.end_of_stream()
        runner.end("a")
        assert ids(await drain(executor)) == ["a"]


async def test_an_interrupted_consumer_finds_the_rest_where_it_stopped() -> None:
    runner = Scripted()
    executor = StreamingExecutor(runner, context())
    executor.submit(asks("a"))
    executor.submit(asks("b"))
    consumer = asyncio.create_task(drain(executor))
    await settle()
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    runner.end("a")
    await settle()
    results = await executor.close("stopped")
    assert [(r.call_id, r.error_class) for r in results] == [("a", ""), ("b", "Aborted")]


async def test_leaving_the_context_leaves_no_task_behind() -> None:
    runner = Scripted()
    before = asyncio.all_tasks()

    async def stream_that_breaks() -> None:
        async with StreamingExecutor(runner, context()) as executor:
            executor.submit(asks("a"))
            await settle()
            raise RuntimeError("the stream broke")

    with pytest.raises(RuntimeError, match="the stream broke"):
        await stream_that_breaks()
    await settle()
    assert asyncio.all_tasks() == before
    assert runner.log == ["start a", "cancel a"]


async def test_a_runner_that_raises_is_answered_for() -> None:
    class Broken(Scripted):
        async def run(self, call: ToolCall, ctx: object, on_effect: object) -> CallEnd:
            raise RuntimeError("a bug of ours")

    async with StreamingExecutor(Broken(), context()) as executor:
        executor.submit(asks("a"))
        executor.end_of_stream()
        assert [(r.call_id, r.error_class) for r in await drain(executor)] == [("a", "Interrupted")]


async def test_a_call_is_submitted_once() -> None:
    async with StreamingExecutor(Scripted(), context()) as executor:
        executor.submit(asks("a"))
        with pytest.raises(InvariantBroken, match="submitted twice"):
            executor.submit(asks("a"))


async def test_context_changes_of_a_batch_apply_in_call_order_and_only_after_it() -> None:
    runner = Scripted({"c": UNSAFE})

    def moves(call: str) -> CallEnd:
        return CallEnd(result(call), lambda ctx: replace(ctx, cwd=ctx.cwd / call))

    async with StreamingExecutor(runner, context(Path("/w"))) as executor:
        for call in "abc":
            executor.submit(asks(call))
        executor.end_of_stream()
        await settle()
        runner.end("b", moves("b"))
        await settle()
        assert executor.context.cwd == Path("/w")
        runner.end("a", moves("a"))
        await settle()
        assert runner.contexts["c"].cwd == Path("/w/a/b")
        runner.end("c", moves("c"))
        await drain(executor)
        assert executor.context.cwd == Path("/w/a/b/c")


async def test_a_change_that_cannot_be_applied_changes_nothing() -> None:
    def breaks(ctx: object) -> object:
        raise ValueError("no")

    runner = Scripted()
    async with StreamingExecutor(runner, context(Path("/w"))) as executor:
        executor.submit(asks("a"))
        executor.end_of_stream()
        await settle()
        runner.end("a", CallEnd(result("a"), breaks))  # type: ignore[arg-type]
        assert ids(await drain(executor)) == ["a"]
        assert executor.context.cwd == Path("/w")


async def test_the_static_path_runs_a_whole_message_and_returns_its_context() -> None:
    class Quick(Scripted):
        async def run(self, call: ToolCall, ctx: object, on_effect: object) -> CallEnd:
            return CallEnd(result(call.id), lambda c: replace(c, cwd=c.cwd / call.id))

    results, ctx = await run_all(Quick(), context(Path("/w")), [asks("a"), asks("b")])
    assert ids(results) == ["a", "b"]
    assert ctx.cwd == Path("/w/a/b")
