"""One call through the eight stages."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import (
    AnyTool,
    AskFirst,
    Decision,
    OnProgress,
    Progress,
    Refused,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
)
from retinue.tools.errors import EnvironmentProblem, ToolError
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.stages import Afterthought, Opinion
from retinue.tools.files.state import Seen
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.pool import assemble
from support.calls import SAFE, Said, Silent, Surroundings, Words, call, context, pipeline, run, tool


async def test_a_call_goes_through_the_stages_in_their_order() -> None:
    around = Surroundings()

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        around.note(f"effect of {ctx.call_id} with {ctx.lease_fds} under {ctx.key}")
        return ToolResult(Said(text="done"))

    line = pipeline(tool("T", act), around=around)
    end = await line.run(call("T"), context(), lambda: around.note("begun"))
    times = {"duration_s": end.result.duration_s, "effect_s": end.result.effect_s}
    assert end.result == CallResult(
        call_id="c1", name="T", content="done", ran=True, title="T", data={"text": "done"}, **times
    )
    assert 0 < end.result.effect_s < end.result.duration_s
    assert around.log == [
        "permission",
        "lease exclusive",
        "begun",
        "journal",
        "effect of c1 with (7,) under ada~1/c1",
        "released",
    ]


async def test_a_safe_call_shares_its_lease_and_one_without_need_takes_none() -> None:
    around = Surroundings()
    line = pipeline(tool("Safe", traits=SAFE), tool("Mail", needs_lease=False), around=around)
    await run(line, call("Safe"))
    await run(line, call("Mail"))
    assert around.log == ["permission", "lease shared", "journal", "released", "permission", "journal"]


async def test_an_unknown_tool_is_answered_with_the_names_that_there_are() -> None:
    end = await run(pipeline(tool("Read"), tool("Grep")), call("Raed"))
    words = "No such tool: Raed. Did you mean Read? There are: Grep, Read."
    assert end.content == f"<tool_use_error>{words}</tool_use_error>"
    assert (end.is_error, end.ran, end.error_class) == (True, False, "NoSuchTool")


async def test_a_deprecated_name_works_and_says_so() -> None:
    end = await run(pipeline(tool("Agent", aliases=("Task",))), call("Task", text="hello"))
    assert end.content == "hello\n\n(Task is a deprecated name of this tool: call Agent.)"
    assert (end.name, end.is_error) == ("Agent", False)


async def test_text_that_is_a_number_is_taken_as_one() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text="x" * args.count))

    assert (await run(pipeline(tool("T", act)), call("T", count="3"))).content == "xxx"


async def test_wrong_input_is_explained_parameter_by_parameter() -> None:
    end = await run(pipeline(tool("T")), call("T", count="many", speed=1))
    assert end.content == (
        "<tool_use_error>InputValidationError: T has these problems with its input:\n"
        "- The parameter `count` is wrong: Input should be a valid integer, unable to parse string as an integer; "
        "found 'many'\n"
        "- An unexpected parameter `speed` was provided</tool_use_error>"
    )
    assert (end.error_class, end.ran) == ("InputValidationError", False)


async def test_input_that_is_not_json_is_shown_and_asked_for_again() -> None:
    asked = ToolCall(id="c1", name="T", malformed='{"text": "unfinished <tool_use_error>')
    end = await run(pipeline(tool("T")), asked)
    assert end.content.startswith("<tool_use_error>InputValidationError: the input of T is no valid JSON object.")
    assert end.content.endswith('What came: {"text": "unfinished &lt;tool_use_error></tool_use_error>')


class Doubts(Silent):
    name = "Doubts"

    async def validate_input(self, args: Words, ctx: ToolContext) -> Refused | AskFirst | None:
        return Refused("no such file", 4) if args.text == "gone" else AskFirst("is this meant?")


async def test_business_validation_refuses_with_a_stable_code() -> None:
    around = Surroundings()
    end = await run(pipeline(Doubts(), around=around), call("Doubts", text="gone"))
    assert (end.content, end.error_class) == ("<tool_use_error>no such file</tool_use_error>", "Refused:Doubts:4")
    assert around.log == []


async def test_business_validation_that_cannot_tell_makes_the_chain_ask() -> None:
    around = Surroundings()
    await run(pipeline(Doubts(), around=around), call("Doubts"))
    assert around.forced == ["is this meant?"]


async def test_a_denied_call_does_not_run_and_says_why() -> None:
    around = Surroundings(decision=Decision("deny", "the rule Bash(rm:*) denies it"))
    end = await run(pipeline(tool("T", fails_group=True), around=around), call("T"))
    assert (end.content, end.denied, end.ran, end.fails_group) == ("the rule Bash(rm:*) denies it", True, False, False)
    assert around.log == ["permission"]


class Hook:
    """A hook before calls that says what it was told to say."""

    def __init__(self, said: Opinion | Exception | None, log: list[str] | None = None) -> None:
        self.said = said
        self.log = [] if log is None else log
        self.shown: list[ToolInput] = []

    async def opinion(self, tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Opinion | None:
        self.log.append("asked")
        self.shown.append(args)
        await asyncio.sleep(0)
        self.log.append("answered")
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Guess:
    """A classifier that says what it was told to say."""

    def __init__(self, said: Decision | Exception | None = None, log: list[str] | None = None) -> None:
        self.said = said
        self.log = [] if log is None else log
        self.texts: list[str] = []

    async def classify(self, tool: AnyTool, text: str, ctx: ToolContext) -> Decision | None:
        self.log.append("asked")
        self.texts.append(text)
        await asyncio.sleep(0)
        self.log.append("answered")
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


class Guessable(Silent):
    """A tool that a classifier may approve."""

    name = "Guessable"

    def classifier_input(self, args: Words) -> str:
        return args.text


async def test_hooks_and_classifier_are_asked_side_by_side() -> None:
    log: list[str] = []
    line = pipeline(Guessable(), opinions=(Hook(None, log), Hook(None, log)), classifier=Guess(None, log))
    await run(line, call("Guessable", text="x"))
    assert log == ["asked", "asked", "asked", "answered", "answered", "answered"]


@pytest.mark.parametrize(
    ("said", "forced", "vouched", "runs"),
    [
        (None, None, False, True),
        (Decision("allow", "fine"), None, True, True),
        (Decision("ask", "look at this"), "look at this", False, True),
        (Decision("deny", "never"), None, False, False),
        (RuntimeError("the hook broke"), None, False, False),
    ],
    ids=["no opinion", "allow", "ask", "deny", "broken"],
)
async def test_the_chain_hears_what_a_hook_said(
    said: Decision | Exception | None, forced: str | None, vouched: bool, runs: bool
) -> None:
    around = Surroundings()
    hook = Hook(Opinion(said) if isinstance(said, Decision) else said)
    end = await run(pipeline(tool("T"), around=around, opinions=(hook,)), call("T"))
    assert (end.ran, around.forced) == (runs, [forced] if runs else [])
    assert around.vouched == ([said if vouched else None] if runs else [])


async def test_the_strictest_of_several_hooks_stands_and_all_their_notes_are_told() -> None:
    around = Surroundings()
    hooks = (
        Hook(Opinion(Decision("allow", "a"), notes=("one",))),
        Hook(Opinion(Decision("ask", "b"), notes=("two",))),
        Hook(Opinion(notes=("three",))),
    )
    end = await run(pipeline(tool("T"), around=around, opinions=hooks), call("T"))
    assert (around.forced, around.vouched) == (["b"], [None])
    assert end.new_messages == ("one", "two", "three")


async def test_a_hook_may_give_another_input_which_is_validated_like_the_models_own() -> None:
    end = await run(
        pipeline(tool("T"), opinions=(Hook(Opinion(updated_input={"text": "new"})),)), call("T", text="old")
    )
    assert (end.content, end.observed) == ("new", {"text": "new"})
    end = await run(pipeline(tool("T"), opinions=(Hook(Opinion(updated_input={"wrong": 1})),)), call("T", text="old"))
    assert (end.ran, end.error_class) == (False, "InputValidationError")


async def test_a_classifier_is_asked_only_about_tools_that_say_what_to_show_it() -> None:
    classifier = Guess(Decision("allow", "looks harmless"))
    line = pipeline(tool("T"), Guessable(), opinions=(Hook(None),), classifier=classifier)
    await run(line, call("T", text="x"))
    await run(line, call("Guessable", text="y"))
    assert classifier.texts == ["y"]


def with_rules(tool_: AnyTool, mode: Mode = "default", *rules: RuleTexts, **more: object) -> Pipeline:
    """A pipeline with the real permission chain."""
    around = Surroundings()
    line = pipeline(tool_, around=around, **more)
    policy = PermissionPolicy((Rights(RuleBook.of(rules, Anchors(Path("/w"), Path("/w"))), mode),))
    return replace(line, permissions=policy)


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
@pytest.mark.parametrize(
    ("rules", "runs"),
    [((), True), ((RuleTexts(ask=("Guessable",)),), False), ((RuleTexts(deny=("Guessable",)),), False)],
    ids=["no rule", "ask", "deny"],
)
async def test_what_a_hook_or_classifier_allows_beats_no_rule(
    mode: Mode, rules: tuple[RuleTexts, ...], runs: bool
) -> None:
    yes = Decision("allow", "fine")
    hooked = with_rules(Guessable(), mode, *rules, opinions=(Hook(Opinion(yes)),))
    guessed = with_rules(Guessable(), mode, *rules, classifier=Guess(yes))
    assert (await run(hooked, call("Guessable", text="x"))).ran == runs
    assert (await run(guessed, call("Guessable", text="x"))).ran == runs


@pytest.mark.parametrize("said", [None, Decision("deny", "no"), Decision("ask", "?"), RuntimeError("broken")])
async def test_a_classifier_that_does_not_approve_leaves_it_unapproved(said: Decision | Exception | None) -> None:
    line = with_rules(Guessable(), classifier=Guess(said))
    assert (await run(line, call("Guessable", text="x"))).denied


async def test_an_error_for_the_model_is_told_in_its_own_words() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        raise ToolError("File does not exist: x.py")

    end = await run(pipeline(tool("T", act)), call("T"))
    assert (end.content, end.is_error, end.ran) == ("File does not exist: x.py", True, True)
    assert end.error_class == "ToolError"


async def test_a_failure_of_the_group_is_one_that_ran() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text="exit 1"), is_error=True)

    line = pipeline(tool("Bash", act, fails_group=True), tool("Read", act))
    assert (await run(line, call("Bash"))).fails_group
    assert not (await run(line, call("Read"))).fails_group
    assert not (await run(line, call("Bash", wrong=1))).fails_group


async def test_a_call_that_takes_too_long_is_stopped() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await asyncio.Event().wait()
        raise AssertionError

    line = pipeline(tool("T", act, fails_group=True, deadline_s=0.01))
    end = await run(line, call("T"))
    assert (end.content, end.error_class) == ("T did not end within 0.01 s and was stopped.", "DeadlinePassed")
    assert end.fails_group


async def test_progress_is_told_until_the_call_ends_and_watchers_cannot_break_it() -> None:
    told: list[str] = []
    kept: list[OnProgress] = []

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        kept.append(on_progress)
        on_progress(Progress("half"))
        return ToolResult(Said(text="done"))

    def watch(asked: ToolCall, progress: Progress) -> None:
        told.append(f"{asked.id} {progress.text}")
        raise RuntimeError("the watcher broke")

    assert (await run(pipeline(tool("T", act), on_progress=watch), call("T"))).content == "done"
    kept[0](Progress("too late"))
    assert told == ["c1 half"]


async def test_a_large_result_goes_to_a_file_and_the_model_gets_its_beginning(tmp_path: Path) -> None:
    line = pipeline(tool("T", max_result_chars=100), folder=tmp_path / "results")
    end = await run(line, call("T", text="line\n" * 1000))
    assert end.spilled_to == str(tmp_path / "results" / "c1.txt")
    assert Path(end.spilled_to).read_text() == "line\n" * 1000
    assert end.content.startswith("<persisted-output>\nThe output is too large to show (5,000 characters).")


async def test_a_result_within_its_limit_is_shown_whole(tmp_path: Path) -> None:
    line = pipeline(tool("T", max_result_chars=None), folder=tmp_path)
    assert (await run(line, call("T", text="x" * 60_000))).spilled_to is None


async def test_text_that_is_no_unicode_is_mended() -> None:
    end = await run(pipeline(tool("T")), call("T", text="caf\u00e9"))
    assert end.content == "caf\u00e9"

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        raise ToolError("bad name \udcff")

    assert (await run(pipeline(tool("T", act)), call("T"))).content == "bad name ?"


async def test_files_that_were_seen_are_recorded_with_the_call() -> None:
    seen = Seen(mtime_ns=1, size=2, digest="d")

    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        ctx.files.put(Path("/w/a"), seen)
        return ToolResult(Said(text=""), new_messages=("note",))

    end = await run(pipeline(tool("T", act)), call("T"))
    assert (end.seen, end.new_messages) == ({"/w/a": seen}, ("note",))


class After:
    """A hook after calls that breaks, or says what it was told to say."""

    def __init__(self, said: Afterthought | None = None) -> None:
        self.said = said
        self.seen: list[tuple[str, str, str]] = []

    async def succeeded(
        self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult, data: ToolData
    ) -> Afterthought:
        assert isinstance(data, Said)
        return self.note("succeeded", result, data.text)

    async def failed(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult) -> Afterthought:
        return self.note("failed", result, result.content)

    def note(self, what: str, result: CallResult, text: str) -> Afterthought:
        self.seen.append((result.call_id, what, text))
        if self.said is None:
            raise RuntimeError("the hook broke")
        return self.said


async def test_hooks_after_a_call_hear_of_success_and_failure_apart_and_cannot_break_it() -> None:
    async def act(args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        if args.text == "raise":
            raise ToolError("no")
        return ToolResult(Said(text="found"), is_error=True)

    after = After()
    line = pipeline(tool("Good"), tool("Bad", act), afterwards=(after,))
    assert not (await run(line, call("Good", "c1", text="hi"))).is_error
    await run(line, call("Bad", "c2", text="raise"))
    await run(line, call("Bad", "c3"))
    await run(line, call("Bad", "c4", wrong=1))
    assert after.seen == [("c1", "succeeded", "hi"), ("c2", "failed", "no"), ("c3", "failed", "found")]


async def test_a_hook_after_a_call_adds_to_what_the_model_is_told_or_replaces_it() -> None:
    after = After(Afterthought(notes=("mind the style",), content="shortened"))
    end = await run(pipeline(tool("T"), afterwards=(after,)), call("T", text="long"))
    assert (end.content, end.new_messages) == ("shortened", ("mind the style",))


async def test_a_full_disk_starts_no_effect() -> None:
    around = Surroundings(fail={"journal": EnvironmentProblem("disk full: free some space")})
    end = await run(pipeline(tool("T"), around=around), call("T"))
    assert (end.content, end.ran, end.error_class) == ("disk full: free some space", False, "EnvironmentProblem")


async def test_what_a_tool_did_stands_when_its_lease_is_not_given_back_in_order() -> None:
    around = Surroundings(fail={"released": RuntimeError("the scheduler is gone")})
    assert (await run(pipeline(tool("T"), around=around), call("T", text="done"))).content == "done"


async def test_an_agent_starts_only_the_kinds_that_its_pool_names() -> None:
    from retinue.tools.registry.builtin import builtin_tools
    from retinue.tools.registry.filters import PoolFilter

    pool = assemble(builtin_tools(), chosen=PoolFilter(allow=("Agent(explore)",)))
    line = pipeline()
    line = type(line)(pool, line.permissions, line.leases, line.journal, line.store)
    end = await run(line, call("Agent", description="x", prompt="y", subagent_type="coder"))
    assert end.content == "<tool_use_error>Agent may be used for these only: explore</tool_use_error>"
