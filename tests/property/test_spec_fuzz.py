"""Whatever is given to the loader, it loads or it raises the spec error, and in reasonable time."""

from __future__ import annotations

import json
import string
from pathlib import Path

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from retinue.orchestrator.spec import InvalidSpec, load_spec_text, starter_spec
from retinue.orchestrator.spec.tree import plain_of, read_tree

TEAMS = Path(__file__).parents[2] / "configs" / "teams"
SEEDS = [starter_spec(), *(path.read_text() for path in sorted(TEAMS.glob("*.yaml")))]
FRAGMENTS = [
    *("&a", "*a", "<<: ", "!!int ", "!x ", "? ", "- ", ": ", "[", "]", "{", "}", "|\n", ">-\n", "'", '"', "#", "---\n"),
    *("...\n", "%YAML 1.1\n", "\t", "\\x", "${A}", "${", "$${", "${B:-", "null", "~", "true", "1e999", "0x", "-", "\0"),
    *("\x85", "\u2028", "\ufeff", "\ud800", "\U0001d518", "9" * 40, "plan", "tmux", "hooks: {}", "replicas: 3\n"),
]
ENV = {"A": "[1, {", "B": ""}
WORDS = """
version name repo path base model use permissions mode allow agents definition role replicas tools tasks id subject
owner blocked_by done_when merge into verify limits usd wall env a coder coder-1 hooks mcp display placement
"""
KEYS = st.sampled_from(WORDS.split()) | st.text(max_size=6)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(FRAGMENTS)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


often = settings(max_examples=150, deadline=None)
CHANGES = st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(FRAGMENTS))


def refusal_of(text: str, **flags) -> InvalidSpec | None:
    try:
        loaded = load_spec_text(text, "fuzz.yaml", env=ENV, **flags)
    except InvalidSpec as refused:
        return refused
    names = [member.name for member in loaded.spec.members()]
    assert len(set(names)) == len(names) > 0
    return None


def loads_or_says_why(text: str, **flags) -> None:
    refused = refusal_of(text, **flags)
    if refused is None:
        return
    first, *rest = str(refused).split("\n")
    count = len(refused.problems)
    assert first == f"{count} problem{'' if count == 1 else 's'} in fuzz.yaml"
    assert len(rest) == min(count, 50) + (count > 50)
    assert "".join((first, *rest)).isprintable()


@often
@given(st.text())
@example("\ud800")
@example("? ? ? ?")
@example("- - - -\n -")
@example('"\\UFFFFFFFF"')
@example("a: " + "[" * 5000)
@example("a: " + "{a: " * 5000)
@example("%YAML 9999999999999.1\n---\na")
def test_any_text_loads_or_raises_the_spec_error(text: str) -> None:
    loads_or_says_why(text)


@often
@given(st.text(alphabet=string.printable + "äß→\U0001d518\x00\x07"), st.sampled_from(SEEDS))
def test_any_text_after_a_good_spec_loads_or_raises_the_spec_error(text: str, seed: str) -> None:
    loads_or_says_why(seed + text)


@often
@given(
    st.sampled_from(SEEDS),
    st.lists(CHANGES, min_size=1, max_size=6),
)
def test_a_good_spec_with_pieces_exchanged_loads_or_raises_the_spec_error(
    seed: str, changes: list[tuple[float, int, str]]
) -> None:
    text = seed
    for where, cut, piece in changes:
        at = int(where * len(text))
        text = text[:at] + piece + text[at + cut :]
    loads_or_says_why(text)


@often
@given(TREES)
def test_any_tree_of_known_keys_loads_or_raises_the_spec_error(tree: object) -> None:
    loads_or_says_why(json.dumps(tree))


@often
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.lists(KEYS | st.just("tasks[0]"), max_size=4), TREES), max_size=3))
def test_any_flag_loads_or_raises_the_spec_error(seed: str, flags: list[tuple[list[str], object]]) -> None:
    overrides = [".".join(path) + "=" + json.dumps(value) for path, value in flags]
    loads_or_says_why(seed, overrides=overrides)


@often
@given(st.sampled_from(SEEDS), st.text(max_size=30), st.text(max_size=30))
def test_any_text_as_a_flag_or_a_model_loads_or_raises_the_spec_error(seed: str, override: str, model: str) -> None:
    loads_or_says_why(seed, overrides=[override], model=model)


@often
@given(TREES)
def test_json_is_read_as_json_reads_it(tree: object) -> None:
    text = json.dumps(tree)
    assume("NaN" not in text and "Infinity" not in text and len(text) < 2000)
    try:
        root, problems = read_tree(text, "x")
    except InvalidSpec as refused:
        assume("half of a character" not in str(refused))
        raise
    assert problems == []
    assert plain_of(root) == json.loads(text)
