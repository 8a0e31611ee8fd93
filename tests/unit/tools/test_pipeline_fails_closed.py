"""Whatever breaks, at whatever stage: the call has a result, and nothing ran that should not have."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import AnyTool, Decision, OnProgress, Subject, ToolContext, ToolResult, Traits, Validation
from retinue.tools.errors import ToolError
from retinue.tools.execution.calls import Lease
from retinue.tools.execution.errors_of import error_class_of
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.streaming import StreamingExecutor, run_all
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from support.calls import SAFE, Said, Silent, Surroundings, Words, call, context, pipeline, run, settle, tool


def test_a_tool_that_says_nothing_gets_the_strictest_traits() -> None:
    silent = Silent()
    assert silent.traits(Words()) == Traits(read_only=False, concurrency_safe=False, destructive=False)
    assert (silent.needs_lease, silent.idempotent, silent.should_defer) == (True, False, False)
    assert silent.classifier_input(Words()) == ""


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk"])
async def test_a_tool_that_says_nothing_is_never_approved_by_itself(mode: Mode) -> None:
    ctx = context()
    policy = PermissionPolicy((Rights(RuleBook((), Anchors(ctx.root, ctx.root)), mode),))
    decision = await policy.decide(Silent(), Words(), ctx, forced_ask=None)
    assert decision.behavior == "deny"


class Yes:
    """A classifier that would allow everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def classify(self, tool: AnyTool, text: str, ctx: ToolContext) -> Decision:
        self.asked.append(text)
        return Decision("allow", "looks fine")


def guarded(tool: AnyTool, folder: Path, *allow: str) -> tuple[Pipeline, Surroundings, Yes]:
    """The real pipeline with the real chain: nothing allows what is not in `allow`, but for a willing classifier."""
    around, yes = Surroundings(), Yes()
    line = pipeline(tool, around=around, folder=folder, classifier=yes)
    book = RuleBook.of([RuleTexts(allow=allow)], Anchors(folder, folder))
    return replace(line, permissions=PermissionPolicy((Rights(book),))), around, yes


async def test_a_tool_that_says_nothing_goes_the_strictest_way_through_the_real_pipeline(tmp_path: Path) -> None:
    denied, _, yes = guarded(Silent(), tmp_path)
    end = await run(denied, call(text="x"))
    assert (end.denied, end.ran, yes.asked) == (True, False, [])  # asked, and not by the classifier
    allowed, around, yes = guarded(Silent(), tmp_path, "Silent")
    end = await run(allowed, call(text="x" * 50_001))
    assert "lease exclusive" in around.log  # alone
    assert "<persisted-output>" in end.content  # within the default limit
    assert yes.asked == []


async def test_calls_of_a_tool_that_says_nothing_run_one_after_the_other(tmp_path: Path) -> None:
    running: list[int] = []

    class Slow(Silent):
        async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
            running.append(args.count)
            await asyncio.sleep(0)
            assert running == [args.count]
            running.clear()
            return ToolResult(Said(text=str(args.count)))

    line, _, _ = guarded(Slow(), tmp_path, "Silent")
    calls = [call("Silent", f"c{n}", count=n) for n in range(5)]
    results, _ = await run_all(line, context(), calls)
    assert [(each.content, each.is_error) for each in results] == [(str(n), False) for n in range(5)]


async def test_a_tool_that_says_nothing_runs_alone_and_under_an_exclusive_lease() -> None:
    around = Surroundings()
    line = pipeline(Silent(), around=around)
    assert not line.traits_of(call()).concurrency_safe
    await run(line, call())
    assert "lease exclusive" in around.log


@pytest.mark.parametrize("wrong", [call("Nope"), call("Safe", nonsense=1)], ids=["unknown tool", "wrong input"])
def test_input_that_does_not_parse_is_the_worst_case(wrong: object) -> None:
    assert pipeline(tool("Safe", traits=SAFE)).traits_of(wrong) == Traits()  # type: ignore[arg-type]


class BreaksAt(Silent):
    """A tool with a fault in one method."""

    name = "Breaks"

    def __init__(self, where: str) -> None:
        self._where = where

    def _at(self, where: str) -> None:
        if where == self._where:
            raise ValueError("a fault in /home/me/secret.py")

    def traits(self, args: Words) -> Traits:
        self._at("traits")
        return SAFE

    def title(self, args: Words) -> str:
        self._at("title")
        return "title"

    async def validate_input(self, args: Words, ctx: ToolContext) -> Validation:
        self._at("validate")
        return None

    async def check_permissions(self, args: Words, ctx: ToolContext) -> Decision | None:
        self._at("check")
        return Decision("allow")

    def subject(self, args: Words, ctx: ToolContext) -> Subject:
        self._at("subject")
        return super().subject(args, ctx)

    async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        self._at("call")
        return ToolResult(Said(text="done"))

    def to_content(self, data: Said) -> str:
        self._at("content")
        return data.text


@pytest.mark.parametrize(
    ("where", "ran", "denied"),
    [
        ("validate", False, False),
        ("check", False, True),
        ("subject", False, True),
        ("call", True, False),
        ("content", True, False),
    ],
)
async def test_a_fault_in_a_tool_becomes_an_error_result(where: str, ran: bool, denied: bool) -> None:
    ctx = context()
    policy = PermissionPolicy((Rights(RuleBook((), Anchors(ctx.root, ctx.root))),))
    around = Surroundings()
    line = pipeline(BreaksAt(where), around=around)
    line = type(line)(line.pool, policy, around, around, line.store)
    end = await run(line, call("Breaks"), ctx)
    assert (end.is_error, end.ran, end.denied) == (True, ran, denied)
    assert end.error_class == ("PermissionDenied" if denied else "ValueError")


async def test_a_tool_that_cannot_say_how_safe_it_is_runs_alone() -> None:
    around = Surroundings()
    end = await run(pipeline(BreaksAt("traits"), around=around), call("Breaks"))
    assert "lease exclusive" in around.log
    assert not end.is_error


async def test_a_tool_that_cannot_name_its_call_still_runs() -> None:
    assert (await run(pipeline(BreaksAt("title")), call("Breaks"))).title == "Breaks"


@pytest.mark.parametrize("stage", ["permission", "lease exclusive", "journal"])
async def test_a_fault_around_a_call_keeps_it_from_running(stage: str) -> None:
    effects: list[str] = []

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        effects.append("ran")
        return ToolResult(Said(text="done"))

    around = Surroundings(fail={stage: RuntimeError("broken")})
    end = await run(pipeline(tool("T", act), around=around), call("T"))
    assert (end.is_error, end.ran, effects) == (True, False, [])


async def test_an_answer_that_is_neither_yes_nor_no_is_no() -> None:
    end = await run(pipeline(tool("T"), around=Surroundings(decision=Decision("ask"))), call("T"))
    assert (end.denied, end.ran) == (True, False)


async def test_a_tool_that_was_cancelled_from_inside_is_answered_for() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        raise asyncio.CancelledError

    end = await run(pipeline(tool("T", act)), call("T"))
    assert "was cancelled from inside" in end.content
    assert end.ran


async def test_a_check_that_was_cancelled_from_inside_is_answered_for() -> None:
    around = Surroundings(fail={"lease exclusive": asyncio.CancelledError()})  # type: ignore[dict-item]
    end = await run(pipeline(tool("T"), around=around), call("T"))
    assert (end.content, end.ran) == ("T was cancelled before it ran.", False)


class Hangs(Silent):
    """A tool, and all that is asked around its call: it waits for ever at one stage."""

    name = "Hangs"

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self.reached = asyncio.Event()

    async def at(self, stage: str) -> None:
        if stage == self._stage:
            self.reached.set()
            await asyncio.Event().wait()

    async def validate_input(self, args: Words, ctx: ToolContext) -> Validation:
        await self.at("validate")
        return None

    async def opinion(self, *args: object) -> None:
        await self.at("opinion")

    def classifier_input(self, args: Words) -> str:
        return "hangs"

    async def classify(self, *args: object) -> None:
        await self.at("classifier")

    async def decide(self, *args: object, classifier: Awaitable[object], **kwargs: object) -> Decision:
        await self.at("permission")
        await classifier
        return Decision("allow")

    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        await self.at("lease")
        yield Lease()

    async def started(self, *args: object) -> None:
        await self.at("journal")

    async def call(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await self.at("call")
        return ToolResult(Said(text="done"))

    async def succeeded(self, *args: object) -> None:
        await self.at("afterwards")

    failed = succeeded


@pytest.mark.parametrize(
    "stage", ["validate", "opinion", "classifier", "permission", "lease", "journal", "call", "afterwards"]
)
async def test_a_cancellation_at_any_stage_yields_one_result_and_leaves_no_task(stage: str) -> None:
    hangs = Hangs(stage)
    line = pipeline(hangs, around=hangs, opinions=(hangs,), classifier=hangs, afterwards=(hangs,))
    executor = StreamingExecutor(line, context())
    executor.submit(call("Hangs"))
    await hangs.reached.wait()
    (end,) = await executor.close("stopped")
    assert (end.call_id, end.is_error, end.error_class) == ("c1", True, "Aborted")
    assert end.ran == (stage in {"journal", "call", "afterwards"})
    await settle()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_no_effect_begins_in_a_call_that_slept_through_its_cancellation() -> None:
    effects: list[str] = []
    asked = asyncio.Event()

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        effects.append("ran")
        return ToolResult(Said(text="done"))

    class Deaf(Surroundings):
        async def decide(self, *args: object, **kwargs: object) -> Decision:
            asked.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return Decision("allow")
            raise AssertionError

    executor = StreamingExecutor(pipeline(tool("T", act), around=Deaf()), context())
    executor.submit(call("T"))
    await asked.wait()
    (end,) = await executor.close("stopped")
    await settle()
    assert (end.ran, effects) == (False, [])


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (FileNotFoundError(2, "No such file", "/home/me/secret"), "OSError:ENOENT"),
        (PermissionError(13, "denied"), "OSError:EACCES"),
        (OSError("no number"), "OSError"),
        (ToolError("x"), "ToolError"),
        (ValueError("/etc/passwd"), "ValueError"),
        (type("x/y z", (Exception,), {})(), "Error"),
        (type("ab", (Exception,), {})(), "Error"),
        ("text", "UnknownError"),
    ],
)
def test_an_error_class_is_stable_and_holds_no_path(error: object, name: str) -> None:
    assert error_class_of(error) == name
