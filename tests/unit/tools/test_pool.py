"""The pool: which tools a model sees, in which order, in which bytes."""

from __future__ import annotations

import json

import pytest

from retinue.tools.base import AnyTool
from retinue.tools.errors import SpecError
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import PoolFilter, assemble
from support.calls import tool


def names(*tools: str, **how: object) -> tuple[str, ...]:
    return assemble([tool(name) for name in tools], **how).names  # type: ignore[arg-type]


def test_built_ins_come_first_and_each_part_is_sorted() -> None:
    pool = assemble([tool("Read"), tool("Bash")], [tool("mcp__b__x"), tool("Aardvark")])
    assert pool.names == ("Bash", "Read", "Aardvark", "mcp__b__x")
    assert pool.builtin == 2


def test_of_two_tools_with_one_name_the_first_stays() -> None:
    first, second, foreign = tool("Read"), tool("Read"), tool("Read")
    assert assemble([first, second], [foreign]).tools == (first,)


def test_another_tool_more_changes_no_byte_of_the_prefix() -> None:
    builtin = builtin_tools()
    without = assemble(builtin, [tool("mcp__b__x")]).serialised()
    with_more = assemble(builtin, [tool("mcp__a__first"), tool("mcp__b__x")])
    prefix = assemble(builtin).serialised()
    assert without.startswith(prefix)
    assert with_more.serialised().startswith(prefix)
    assert with_more.builtin == len(builtin)


def test_the_bytes_do_not_depend_on_the_order_in_which_tools_came() -> None:
    assert assemble(builtin_tools()).serialised() == assemble(reversed(builtin_tools())).serialised()


def test_what_the_model_is_told_is_what_is_serialised() -> None:
    pool = assemble(builtin_tools())
    lines = [json.loads(line) for line in pool.serialised().splitlines()]
    assert [line["name"] for line in lines] == list(pool.names) == [spec.name for spec in pool.specs()]
    assert all(line["input_schema"]["type"] == "object" for line in lines)


def test_tools_that_are_denied_as_a_whole_are_not_seen() -> None:
    assert names("Bash", "Read", denied=("Bash",)) == ("Read",)
    assert names("TaskGet", "TaskList", "Read", denied=("Task*",)) == ("Read",)
    assert names("mcp__a__x", "mcp__ab__x", denied=("mcp__a",)) == ("mcp__ab__x",)
    assert names("Read", "Bash", denied=("*",)) == ()


def test_an_agent_sees_what_its_lists_leave() -> None:
    assert names("Bash", "Read", "Grep", chosen=PoolFilter(allow=("Read", "G*"))) == ("Grep", "Read")
    assert names("Bash", "Read", "Grep", chosen=PoolFilter(deny=("B*",))) == ("Grep", "Read")
    assert names("Bash", "Read", chosen=PoolFilter(allow=("Bash", "Read"), deny=("Bash",))) == ("Read",)
    assert names("Bash", chosen=PoolFilter(allow=())) == ()


def test_a_deprecated_name_in_a_list_means_the_same_tool() -> None:
    agent = tool("Agent", aliases=("Task",))
    assert assemble([agent], chosen=PoolFilter(allow=("Task",))).names == ("Agent",)
    assert assemble([agent], chosen=PoolFilter(deny=("Task",))).names == ()


def test_a_tool_that_is_not_enabled_is_not_seen() -> None:
    class Off(type(tool("Off"))):
        def is_enabled(self) -> bool:
            return False

    assert assemble([Off()]).names == ()


@pytest.mark.parametrize(
    ("allow", "only"),
    [
        (("Agent(explore, coder)",), {"explore", "coder"}),
        (("Agent(explore)", "Task(coder)"), {"explore", "coder"}),
        (("Agent",), None),
        (("Agent(explore)", "Agent"), None),
        (("Agent(*)",), None),
    ],
)
def test_an_agent_may_be_bound_to_kinds_of_children(allow: tuple[str, ...], only: set[str] | None) -> None:
    pool = assemble([tool("Agent", aliases=("Task",))], chosen=PoolFilter(allow=allow))
    assert pool.only_names.get("Agent") == only


@pytest.mark.parametrize("entry", ["", "Agent(", "Agent()", "rm -rf", "Read(a)(b)"])
def test_an_entry_that_names_no_tool_is_refused(entry: str) -> None:
    with pytest.raises(SpecError, match="tools: "):
        assemble([tool("Read")], chosen=PoolFilter(allow=(entry,)))


def test_a_tool_is_found_by_its_name_before_anothers_alias() -> None:
    old, new = tool("Task"), tool("Agent", aliases=("Task", "Spawn"))
    pool = assemble([new, old])

    def found(name: str) -> tuple[AnyTool, str] | None:
        hit = pool.find(name)
        return (hit.tool, hit.alias) if hit else None

    assert found("Task") == (old, "")
    assert found("Spawn") == (new, "Spawn")
    assert found("Nope") is None


def test_a_wildcard_does_not_reach_a_tool_by_its_old_name() -> None:
    pool = assemble(builtin_tools(), chosen=PoolFilter(("Task*",), ()))
    assert "TaskCreate" in pool.names
    assert all(name.startswith("Task") for name in pool.names)
    assert assemble(builtin_tools(), chosen=PoolFilter(("Task",), ())).names == ("Agent",)
