"""Blocks, whatever tool they come from: harmless everywhere, and never a reason for a viewer to break."""

from __future__ import annotations

import json

import pytest

from retinue.tools.execution.calls import CallResult
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import (
    Block,
    Blocks,
    Code,
    CodeLine,
    Diff,
    DiffLine,
    Heading,
    Line,
    Markdown,
    Output,
    Table,
    Text,
    code_of,
    cut_diff,
)
from retinue.tools.render.calls import SeenCall, shown
from retinue.tools.render.plain import as_text, first_line
from retinue.tools.render.web import as_json
from support.calls import Said, Silent, Words
from support.shown_calls import ansi_of, finder, text_of

EVIL = "\x1b[31mred\x1b]8;;http://evil\x07link\x9b2J \u202egnp.exe\u200b\r\nnext\x07"
WITH_EVIL: list[Block] = [
    Heading(EVIL, EVIL),
    Line(EVIL),
    Text(EVIL),
    Code((CodeLine(1, EVIL), CodeLine(None, EVIL, hit=True)), "x.py"),
    Diff(((DiffLine("+", 1, EVIL), DiffLine("-", 1, EVIL)),)),
    Output(EVIL, 1, note=EVIL),
    Table((EVIL,), ((EVIL,),)),
    Markdown(EVIL),
]


@pytest.mark.parametrize("block", WITH_EVIL, ids=lambda block: type(block).__name__)
def test_nothing_that_a_tool_found_reaches_a_terminal_as_an_order(block: Block) -> None:
    for text in (as_text((block,)), json.dumps(as_json((block,)), ensure_ascii=False)):
        assert not set(text) & set("\x1b\x9b\x07\r\u202e\u200b")
    drawn = ansi_of((block,), width=200)
    assert "http://evil" not in drawn
    assert not set(drawn) & set("\x9b\x07\r\u202e\u200b")
    assert "\x1b[2J" not in drawn
    assert "\x1b]8" not in drawn


def test_markup_of_the_terminal_library_is_text_like_any_other() -> None:
    blocks: Blocks = (Heading("[red]a[/red]", "[b]"), Line("[/]"), Text("[link=x]"), Table(("[x]",), (("[/x]",),)))
    for sign in ("[red]a[/red]", "[b]", "[/]", "[link=x]", "[/x]"):
        assert sign in ansi_of(blocks)


def test_source_is_coloured_by_the_name_of_its_file_and_stays_as_it_is() -> None:
    code = code_of("def f():\n\n    return 1\n", "a.py")
    drawn = ansi_of((code,))
    assert "\x1b[" in drawn.replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert as_text((code,)) == "  1 def f():\n  2\n  3     return 1"
    assert "def f():" in ansi_of((code_of("def f():", "a.unknown"),))


def test_what_is_too_long_is_cut_and_counted() -> None:
    assert code_of("\n".join("abcde"), most=3).more == 2
    lines = [DiffLine("+", n, "x") for n in range(5)]
    assert cut_diff([lines, lines], most=7).more == 3
    assert as_text((Code((CodeLine(1, "a"),), more=2),)) == "  1 a\n  … 2 more lines"
    assert as_text((Diff(((DiffLine("+", 1, "a"),), (DiffLine("-", 9, "b"),)), more=1),)) == (
        "  1 + a\n  …\n  9 - b\n  … 1 more line"
    )


def test_an_output_says_how_it_ended_only_when_that_is_news() -> None:
    assert as_text((Output("a\n", 0),)) == "  a"
    assert as_text((Output("", -9, failed=True, note="stopped"),)) == "  [ended by signal 9: stopped]"
    assert as_text((Output("a", None),)) == "  a"
    assert first_line((Heading("Read", "x"), Line("y"))) == "Read x"


class Plain(Silent):
    """A tool without a renderer of its own."""

    name = "Plain"

    def title(self, args: Words) -> str:
        return f"says {args.text}"


class Broken(Renderer[Words, Said]):
    def use(self, args: Words) -> Blocks:
        raise ValueError("a fault")


class BreaksOnSight(Plain):
    name = "BreaksOnSight"

    def renderer(self) -> Renderer[Words, Said]:
        return Broken(self)


TOOLS = finder([Plain(), BreaksOnSight()])


def call(name: str = "Plain", content: str = "hello", *, is_error: bool = False, **more: object) -> SeenCall:
    values = {"call_id": "c", "name": name, "content": content, "is_error": is_error, "title": "title", **more}
    return SeenCall(name, {"text": "x"}, CallResult.model_validate(values))


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (SeenCall("Plain", {"text": "x"}), "says x"),
        (call(data={"text": "found"}), "says x\n  found"),
        (call(), "says x\n  hello"),
        (call(data={"other": 1}), "says x\n  hello"),
        (call(is_error=True, content="<tool_use_error>bad\nvery</tool_use_error>"), "says x\n  bad\n  very"),
        (call(is_error=True, denied=True, content="no"), "says x\n  denied: no"),
        (call("Gone"), "title\n  hello"),
        (call("Gone", is_error=True, denied=True), "title\n  denied: hello"),
        (call("BreaksOnSight"), "title\n  hello"),
        (SeenCall("Plain", {"wrong": 1}), "Plain"),
        (SeenCall("Gone", {}), "Gone"),
        (call(observed={"text": "/abs/x"}), "says /abs/x\n  hello"),
    ],
)
def test_a_call_is_always_shown_as_well_as_can_be(seen: SeenCall, text: str) -> None:
    assert as_text(shown(seen, TOOLS)) == text


def test_calls_of_a_tool_that_says_nothing_about_groups_are_shown_one_by_one() -> None:
    assert text_of([call(), call()], TOOLS) == "says x\n  hello\nsays x\n  hello"
    assert text_of([call("Gone"), call("Gone")], TOOLS).count("title") == 2


def test_a_subclass_looks_like_the_tool_it_comes_from() -> None:
    from retinue.tools.files.read.tool import Read

    class Peek(Read):
        name = "Peek"

    assert type(Peek().renderer()) is type(Read().renderer())
