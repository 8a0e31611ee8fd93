"""No text makes the analysis raise, and none keeps it busy for long."""

from __future__ import annotations

from itertools import islice

from hypothesis import example, given
from hypothesis import strategies as st

from retinue.tools.shell.analysis.table import builtin_table
from support.shell_fuzz.endurance import LIMIT_MS, analyse_all_ways, slow
from support.shell_fuzz.grammar import Grammar
from support.shell_fuzz.texts import hard_texts

COUNT, SEED = 500, 4
GROSS = 2.0
"""A busy machine takes longer for the same work, also in processor time."""


@given(st.one_of(st.text(), st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
@example("\0")
@example("\ud800'")
@example("")
def test_any_text_is_judged(text: str) -> None:
    analyse_all_ways(text)


def test_no_hard_text_takes_more_than_its_time() -> None:
    grammar = Grammar(SEED, builtin_table())
    taken = {text: ms for text in islice(hard_texts(SEED, grammar), COUNT) if (ms := slow(text)) is not None}
    assert all(ms < GROSS * LIMIT_MS for ms in taken.values()), (
        f"more than {LIMIT_MS} ms: { {text[:99]: ms for text, ms in taken.items()} }"
    )
