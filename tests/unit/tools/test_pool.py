"""The pool: which tools a model sees, in which order, in which bytes."""

from __future__ import annotations

import json

import pytest

from retinue.tools.base import AnyTool
from retinue.tools.errors import SpecError
from retinue.tools.registry.builtin import built_in, builtin_tools
from retinue.tools.registry.filters import PoolFilter, PoolMode
from retinue.tools.registry.gates import GATES
from retinue.tools.registry.pool import assemble
from retinue.tools.registry.table import BASE_TOOLS
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


BUILT_IN = ("Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Read", "TaskCreate", "TeamCreate", "Write")


def test_the_simple_mode_leaves_shell_read_and_edit_and_what_servers_bring() -> None:
    assert names(*BUILT_IN, mode=PoolMode(simple=True)) == ("Bash", "Edit", "Read")
    foreign = assemble([tool("Bash"), tool("Write")], [tool("mcp__a__x")], mode=PoolMode(simple=True))
    assert foreign.names == ("Bash", "mcp__a__x")


def test_the_repl_hides_what_it_wraps_and_stands_for_it_in_the_simple_mode() -> None:
    with_repl = (*BUILT_IN, "REPL")
    assert names(*with_repl, mode=PoolMode(repl=True)) == ("AskUserQuestion", "REPL", "TaskCreate", "TeamCreate")
    assert names(*with_repl, mode=PoolMode(simple=True, repl=True)) == ("REPL",)
    assert names(*with_repl) == tuple(sorted(with_repl))


def test_a_build_without_the_repl_hides_nothing_for_it() -> None:
    assert names(*BUILT_IN, mode=PoolMode(repl=True)) == BUILT_IN
    assert names(*BUILT_IN, mode=PoolMode(simple=True, repl=True)) == ("Bash", "Edit", "Read")


def test_an_agent_of_an_agent_neither_asks_people_nor_makes_teams() -> None:
    left = set(BUILT_IN) - {"AskUserQuestion", "TeamCreate"}
    assert set(names(*BUILT_IN, mode=PoolMode(nested=True))) == left


def test_in_the_background_only_the_named_tools_are_left_and_those_of_servers() -> None:
    pool = assemble([tool(name) for name in BUILT_IN], [tool("mcp__a__x")], mode=PoolMode(background=True))
    assert pool.names == ("Agent", "Bash", "Edit", "Glob", "Read", "Write", "mcp__a__x")


def test_a_shell_with_a_search_of_its_own_needs_no_glob_and_grep() -> None:
    full, less = ({each.name for each in builtin_tools(embedded_search=search)} for search in (False, True))
    assert full - less == {"Glob", "Grep"}


def test_each_entry_of_the_table_is_the_tool_that_it_says() -> None:
    made = {each.name: each for each in builtin_tools()}
    for entry in built_in():
        assert made[entry.name].group == entry.group
        assert type(made[entry.name]).__module__ == f"retinue.tools.{entry.folder}.tool"
    assert len(made) == len(list(built_in()))
    assert all(entry.gate in {"", *GATES} for entry in BASE_TOOLS)


def test_a_gate_that_is_off_leaves_its_tool_out() -> None:
    gated = {entry.name for entry in BASE_TOOLS if entry.gate}
    assert not gated & {entry.name for entry in built_in(dict.fromkeys(GATES, False))}
    assert {entry.name for entry in built_in({})} == {entry.name for entry in BASE_TOOLS if not entry.gate}
