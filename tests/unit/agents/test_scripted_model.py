"""The scripted model: turns, conditions, failures, pace, and that a restarted agent goes on at the right place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from retinue.agents.model import scripted
from retinue.agents.model.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    Usage,
    UserMessage,
)
from retinue.agents.model.port import BlockDone, Broken, MessageDone, ModelRequest, StreamEvent, TextDelta
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.scripted import ScriptedModel

pytestmark = pytest.mark.asyncio


def a_model(turns: str, agent: str = "a") -> ScriptedModel:
    lines = "\n".join(f"    {line}" for line in turns.strip("\n").splitlines())
    return ScriptedModel(parse_script(f"agents:\n  {agent}:\n{lines}\n"), where="test.yaml")


class Talk:
    """One conversation. `results` answers calls in order; what is not given is `ok`."""

    def __init__(self, model: ScriptedModel, agent: str = "a") -> None:
        self.model = model
        self.agent = agent
        self.messages: tuple[Message, ...] = ()
        self.owed: tuple[ToolUseBlock, ...] = ()

    async def events(self, attempt: int = 0) -> list[StreamEvent]:
        request = ModelRequest(
            run="r", agent=self.agent, model="script:x", system="", messages=self.messages, attempt=attempt
        )
        return [event async for event in self.model.stream(request)]

    def hear(self, text: str = "", results: Sequence[str] = (), errors: Sequence[int] = ()) -> None:
        given = [*results, *["ok"] * (len(self.owed) - len(results))]
        blocks = [
            ToolResultBlock(tool_use_id=call.id, content=result, is_error=k in errors)
            for k, (call, result) in enumerate(zip(self.owed, given, strict=True))
        ]
        self.messages += (UserMessage(content=(*blocks, *([TextBlock(text=text)] if text or not blocks else []))),)

    def keep(self, blocks: tuple[AssistantBlock, ...]) -> None:
        self.messages += (AssistantMessage(content=blocks),)
        self.owed = tuple(block for block in blocks if isinstance(block, ToolUseBlock))

    async def say(
        self, text: str = "", results: Sequence[str] = (), errors: Sequence[int] = ()
    ) -> tuple[AssistantBlock, ...]:
        self.hear(text, results, errors)
        events = await self.events()
        assert isinstance(events[-1], MessageDone), events[-1]
        blocks = blocks_of(events)
        self.keep(blocks)
        return blocks


def blocks_of(events: Sequence[StreamEvent]) -> tuple[AssistantBlock, ...]:
    return tuple(event.block for event in events if isinstance(event, BlockDone))


def told(blocks: Sequence[AssistantBlock]) -> list[str]:
    """Text as it is, calls as `Tool(first value)`."""
    said: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            said.append(block.text)
        elif isinstance(block, ToolUseBlock):
            said.append(f"{block.name}({next(iter(block.input.values()), '')})")
    return said


async def test_turns_come_in_order_and_the_end_is_said():
    talk = Talk(a_model("- {say: one, calls: {Read: {p: x}}}\n- say: two"))
    assert told(await talk.say("go")) == ["one", "Read(x)"]
    assert told(await talk.say()) == ["two"]
    assert told(await talk.say("more")) == ["script: no turn left for a in test.yaml"]
    assert told(await talk.say("and more")) == ["script: no turn left for a in test.yaml"]


async def test_an_answer_streams_text_then_blocks_then_the_reason_it_stops():
    talk = Talk(a_model("- {think: hm, say: hi, calls: [Read: {p: x}, Read: {p: y}]}"))
    talk.hear("go")
    events = await talk.events()
    assert [event.kind for event in events] == [
        "message_started",
        "block_done",
        "text_delta",
        "block_done",
        "block_done",
        "block_done",
        "message_done",
    ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "hi"
    assert isinstance(blocks_of(events)[0], ThinkingBlock)
    assert [event.index for event in events if isinstance(event, BlockDone)] == [0, 1, 2, 3]
    done = events[-1]
    assert isinstance(done, MessageDone)
    assert done.stop_reason == "tool_use"


async def test_a_turn_whose_when_is_not_met_is_passed_over_and_stays():
    talk = Talk(a_model("- {when: alarm, say: help}\n- say: one\n- say: two"))
    assert told(await talk.say("go")) == ["one"]
    assert told(await talk.say("alarm!")) == ["help"]
    assert told(await talk.say("alarm!")) == ["two"]


async def test_repeat_takes_a_turn_so_often_or_without_end():
    talk = Talk(
        a_model("- {when: a, say: A, repeat: 2}\n- {when: b, say: B, repeat: true}\n- {say: end, repeat: true}")
    )
    said = [told(await talk.say(text))[0] for text in ("a", "b", "a", "a", "b", "b")]
    assert said == ["A", "B", "A", "end", "B", "B"]


async def test_ids_are_unique_in_the_conversation_also_for_repeated_turns():
    talk = Talk(a_model("- {calls: [Read: {p: x}, Read: {p: y}], repeat: true}"))
    ids = [block.id for _ in range(4) for block in await talk.say("go") if isinstance(block, ToolUseBlock)]
    assert len(set(ids)) == 8


async def test_ids_hold_the_agent_and_only_what_an_id_may_hold():
    model = a_model("- calls: {Read: {p: x}}", agent='"*"')
    seen: set[str] = set()
    for name in ("lead", "a:b", "a.b", "a/b"):
        talk = Talk(model, name)
        (block,) = await talk.say("go")
        assert isinstance(block, ToolUseBlock)
        assert block.id.replace("_", "").replace("-", "").isalnum()
        seen.add(block.id)
    assert len(seen) == 4


async def test_wait_for_holds_the_script_until_all_of_it_came_in_any_order():
    talk = Talk(
        a_model(
            """
- say: begun
- wait_for: [{mail_from: b}, {mail_from: c}]
  say: both are done
- say: after
"""
        )
    )
    assert told(await talk.say("go")) == ["begun"]
    assert told(await talk.say(mail("c"))) == ["script: waiting for mail_from b"]
    assert told(await talk.say("other")) == ["script: waiting for mail_from b"]
    assert told(await talk.say(mail("b"))) == ["both are done"]
    assert told(await talk.say("go on")) == ["after"]


async def test_what_answered_one_wait_does_not_answer_the_next():
    talk = Talk(a_model("- {wait_for: {mail_from: b}, say: first, repeat: 2}\n- say: end"))
    assert told(await talk.say(mail("b"))) == ["first"]
    assert told(await talk.say("x")) == ["script: waiting for mail_from b"]
    assert told(await talk.say(mail("b"))) == ["first"]


async def test_two_mails_that_came_at_once_count_twice():
    talk = Talk(a_model("- {wait_for: [{mail_from: b}, {mail_from: b}], say: two}"))
    assert told(await talk.say(mail("b") + mail("b"))) == ["two"]


async def test_expect_that_is_not_met_breaks_the_stream_and_shows_what_came():
    talk = Talk(a_model("- calls: {Bash: {c: test}}\n- {expect: {tool_result_of: Bash, matches: passed}, say: fine}"))
    await talk.say("go")
    talk.hear(results=["2 failed\n" + "x" * 2_000 + "\nthe end"])
    (broken,) = await talk.events()
    assert isinstance(broken, Broken)
    assert broken.reason == "expectation"
    assert broken.message.startswith(
        "turn 2 of a in test.yaml expects tool_result_of Bash, /passed/; this came instead:\n2 failed\nxxx"
    )
    assert broken.message.endswith("the end")
    assert len(broken.message) < 800


async def test_captures_are_used_in_this_and_later_turns_wherever_there_is_a_string():
    talk = Talk(
        a_model(
            r"""
- {calls: {Grep: {pattern: bug}}}
- capture: {file: '^(\S+\.py):', line: ':(\d+):'}
  say: found in ${file}
  calls: {Read: {file_path: "${file}", list: ["${line}", {deep: "at ${line} of ${agent}"}], n: 3}}
- say: ${file} again, $${file} as it stands
"""
        )
    )
    await talk.say("go")
    said = await talk.say(results=["x.txt\nsrc/m.py:12: bug"])
    assert told(said)[0] == "found in src/m.py"
    assert isinstance(said[1], ToolUseBlock)
    assert said[1].input == {"file_path": "src/m.py", "list": ["12", {"deep": "at 12 of a"}], "n": 3}
    assert told(await talk.say()) == ["src/m.py again, ${file} as it stands"]


async def test_what_was_captured_is_not_searched_for_names_again():
    talk = Talk(a_model("- {capture: {x: '<(.*)>'}, say: 'got ${x}'}"))
    assert told(await talk.say("<${agent}>")) == ["got ${agent}"]


async def test_a_capture_that_finds_nothing_is_an_unmet_expectation():
    talk = Talk(a_model("- {capture: {n: 'line (\\d+)'}, say: '${n}'}"))
    talk.hear("nothing of the kind")
    (broken,) = await talk.events()
    assert isinstance(broken, Broken)
    assert broken.reason == "expectation"
    assert "captures n with /line (\\d+)/, which was not found" in broken.message


async def test_a_name_that_a_passed_over_turn_would_have_captured_is_an_unmet_expectation():
    talk = Talk(a_model("- {when: never, capture: {n: '(x)'}, say: x}\n- say: ${n}"))
    talk.hear("go")
    (broken,) = await talk.events()
    assert isinstance(broken, Broken)
    assert "turn 2 of a in test.yaml uses ${n}, which nothing has captured so far" in broken.message


async def test_an_agent_that_the_script_does_not_know_is_told_who_is_known():
    talk = Talk(a_model("- say: x"), agent="stranger")
    talk.hear("go")
    (broken,) = await talk.events()
    assert broken == Broken(
        reason="not_found", message='test.yaml has no turns for agent stranger, only for a; add it, or "*"'
    )


@pytest.mark.parametrize(
    ("fail", "reason", "retry_after"),
    [
        ("429", "rate_limited", None),
        ("{status: 429, retry_after: 1.5}", "rate_limited", 1.5),
        ("529", "overloaded", None),
        ("500", "server_error", None),
        ("401", "authentication", None),
        ("drop", "dropped", None),
        ("stall", "dropped", None),
        ("close", "truncated", None),
        ("error", "overloaded", None),
    ],
)
async def test_a_turn_fails_once_and_then_works(fail: str, reason: str, retry_after: float | None):
    talk = Talk(a_model(f"- {{say: hello there, fail: {fail}}}"))
    talk.hear("go")
    broken = (await talk.events())[-1]
    assert isinstance(broken, Broken)
    assert (broken.reason, broken.retry_after_s) == (reason, retry_after)
    assert told(blocks_of(await talk.events(attempt=1))) == ["hello there"]


async def test_it_fails_as_often_as_it_says_and_attempts_before_a_restart_count():
    turns = "- {say: x, fail: {status: 529, times: 3}}"
    talk = Talk(a_model(turns))
    talk.hear("go")
    ends = [(await talk.events(attempt=k))[-1].kind for k in range(4)]
    assert ends == ["broken", "broken", "broken", "message_done"]
    talk.model = a_model(turns)
    assert (await talk.events(attempt=3))[-1].kind == "message_done"


async def test_a_drop_comes_in_the_middle_of_the_block_it_names_after_the_ones_before_it():
    talk = Talk(a_model("- {say: hello, calls: [Read: {p: x}, Read: {p: y}], fail: {kind: drop, block: 2}}"))
    talk.hear("go")
    events = await talk.events()
    assert told(blocks_of(events)) == ["hello"]
    assert events[-1].kind == "broken"


async def test_after_a_break_the_kept_blocks_are_completed_by_the_rest_of_the_turn():
    talk = Talk(a_model("- {say: hello, calls: [Read: {p: x}, Read: {p: y}], fail: drop}\n- say: next"))
    talk.hear("go")
    kept = blocks_of(await talk.events())
    talk.keep(kept)
    assert told(kept) == ["hello", "Read(x)"]
    rest = await talk.say(results=["X"])
    assert told(rest) == ["Read(y)"]
    assert {block.id for block in (*kept, *rest) if isinstance(block, ToolUseBlock)}.__len__() == 2
    assert told(await talk.say(results=["Y"])) == ["next"]


async def test_a_turn_that_was_completed_after_a_break_counts_once():
    talk = Talk(a_model("- {say: hello, calls: {Read: {p: x}}, fail: {kind: drop, block: 2}, repeat: 2}\n- say: end"))
    talk.hear("go")
    talk.keep(blocks_of(await talk.events()))
    assert told(await talk.say()) == ["Read(x)"]
    talk.hear()
    assert (await talk.events())[-1].kind == "broken"
    talk.keep(blocks_of(await talk.events(attempt=1)))
    assert told(await talk.say()) == ["end"]


async def test_a_break_that_kept_nothing_is_asked_again_whole():
    talk = Talk(a_model("- {say: hello, calls: {Read: {p: x}}, fail: {kind: drop, block: 1}}"))
    talk.hear("go")
    assert told(blocks_of(await talk.events())) == []
    assert told(blocks_of(await talk.events(attempt=1))) == ["hello", "Read(x)"]


async def test_malformed_input_is_answered_and_then_only_that_call_is_made_again():
    talk = Talk(
        a_model(
            "- {say: s, calls: [Read: {p: x}, Read: {p: y}], fail: {kind: malformed, call: 2, times: 2}}\n- say: end"
        )
    )
    first = await talk.say("go")
    assert [block.malformed for block in first if isinstance(block, ToolUseBlock)] == [None, '{"p": "y"']
    second = await talk.say(results=["X", "not JSON"], errors=[1])
    assert [block.malformed for block in second if isinstance(block, ToolUseBlock)] == ['{"p": "y"']
    assert told(await talk.say(results=["not JSON"], errors=[0])) == ["Read(y)"]
    assert told(await talk.say()) == ["end"]


async def test_pace_is_kept_on_the_given_clock():
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    script = parse_script(
        "pace: {tokens_per_second: 100, first_token_s: 0.5}\nagents: {a: [{say: "
        + "x" * 400
        + "}, {say: y, pace: {}}]}"
    )
    talk = Talk(ScriptedModel(script, sleep=sleep))
    talk.hear("go")
    events = await talk.events()
    assert sum(slept) == pytest.approx(1.5)
    assert slept[0] == 0.5
    assert len([event for event in events if isinstance(event, TextDelta)]) == 20
    slept.clear()
    talk.keep(blocks_of(events))
    await talk.say("on")
    assert sum(slept) == 0


async def test_without_a_pace_other_tasks_run_between_blocks():
    talk = Talk(a_model("- {say: x, calls: [Read: {p: x}, Read: {p: y}]}"))
    talk.hear("go")
    ran: list[int] = []

    async def other() -> None:
        for k in range(10):
            ran.append(k)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await talk.events()
    assert len(ran) >= 3
    await task


async def test_usage_is_estimated_and_the_repeated_prefix_comes_from_the_cache():
    model = a_model("- {say: " + "y" * 40 + "}\n- {say: x, usage: {input: 7, cache_write: 5}}")
    tools = (ToolSpec(name="Read", description="d" * 36, input_schema={"properties": {"p": {}}}),)
    first = UserMessage(content=(TextBlock(text="q" * 80),))
    base = {"run": "r", "agent": "a", "model": "script:x", "system": "s" * 200, "tools": tools}
    one = [e async for e in model.stream(ModelRequest.model_validate({**base, "messages": (first,)}))]
    assert isinstance(one[-1], MessageDone)
    assert one[-1].usage == Usage(input=100, output=10)
    then = (first, AssistantMessage(content=blocks_of(one)), UserMessage(content=(TextBlock(text="r" * 40),)))
    two = [e async for e in model.stream(ModelRequest.model_validate({**base, "messages": then}))]
    assert isinstance(two[-1], MessageDone)
    assert two[-1].usage == Usage(input=7, output=1, cache_read=100, cache_write=5)


async def test_a_stop_reason_can_be_said():
    talk = Talk(a_model("- {say: cut, stop_reason: max_tokens}"))
    talk.hear("go")
    done = (await talk.events())[-1]
    assert isinstance(done, MessageDone)
    assert done.stop_reason == "max_tokens"


async def test_only_new_messages_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    looked: list[Message] = []
    count = scripted.__dict__["_chars"]
    monkeypatch.setattr(scripted, "_chars", lambda message: (looked.append(message), count(message))[1])
    talk = Talk(a_model("- {calls: {Read: {p: x}}, repeat: true}"))
    for _ in range(50):
        await talk.say()
    assert len(looked) == 99


async def test_conversations_of_one_name_that_take_turns_are_each_remembered(monkeypatch: pytest.MonkeyPatch):
    looked: list[Message] = []
    count = scripted.__dict__["_chars"]
    monkeypatch.setattr(scripted, "_chars", lambda message: (looked.append(message), count(message))[1])
    model = a_model("- {calls: {Read: {p: x}}, repeat: true}")
    first, second = Talk(model), Talk(model)
    await first.say("task 1")
    await second.say("task 2")
    for _ in range(10):
        await first.say()
        await second.say()
    assert len(looked) == 2 * 21


async def test_a_conversation_that_was_rewound_or_rewritten_is_read_anew():
    talk = Talk(a_model("- say: one\n- say: two\n- say: three"))
    await talk.say("go")
    await talk.say("on")
    talk.messages = talk.messages[:3]
    assert told(blocks_of(await talk.events())) == ["two"]
    talk.messages = (*talk.messages[:2], UserMessage(content=(TextBlock(text="else"),)))
    assert told(blocks_of(await talk.events())) == ["two"]


async def test_a_last_message_that_was_rewritten_is_another_conversation():
    talk = Talk(a_model("- {when: alarm, say: help}\n- say: one"))
    talk.hear("go")
    assert told(blocks_of(await talk.events())) == ["one"]
    talk.messages = (UserMessage(content=(ToolResultBlock(tool_use_id="x", content=""), TextBlock(text="go"))),)
    assert told(blocks_of(await talk.events())) == ["one"]
    talk.messages = (UserMessage(content=(ToolResultBlock(tool_use_id="x", content="alarm"), TextBlock(text="go"))),)
    assert told(blocks_of(await talk.events())) == ["help"]


async def test_input_that_was_added_before_the_model_spoke_belongs_to_the_same_answer():
    talk = Talk(a_model("- {when: alarm, say: help}\n- say: one"))
    talk.hear("go")
    assert told(blocks_of(await talk.events())) == ["one"]
    talk.hear("alarm")
    assert told(blocks_of(await talk.events())) == ["help"]


async def test_conversations_of_several_agents_do_not_mix():
    model = a_model("- say: one ${agent}\n- say: two ${agent}", agent='"*"')
    b, c = Talk(model, "b"), Talk(model, "c")
    assert told(await b.say("go")) == ["one b"]
    assert told(await c.say("go")) == ["one c"]
    assert told(await c.say("go")) == ["two c"]
    assert told(await b.say("go")) == ["two b"]


async def test_two_children_of_one_name_each_have_the_whole_script():
    model = a_model("- say: one\n- say: two")
    first, second = Talk(model), Talk(model)
    assert told(await first.say("task 1")) == ["one"]
    assert told(await second.say("task 2")) == ["one"]
    assert told(await first.say("on")) == ["two"]
    assert told(await second.say("on")) == ["two"]


async def test_a_request_without_messages_is_refused():
    talk = Talk(a_model("- say: x"))
    (broken,) = await talk.events()
    assert isinstance(broken, Broken)
    assert broken.reason == "invalid_request"


def mail(sender: str) -> str:
    return f'<teammate-message teammate_id="{sender}" kind="text">\nhello\n</teammate-message>\n'
