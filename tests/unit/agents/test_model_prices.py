"""What requests cost."""

from __future__ import annotations

import pytest

from retinue.agents.model.messages import Usage
from retinue.agents.model.prices import cost_usd, price_list

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("anthropic:claude-sonnet-5", Usage(input=MILLION), 2.0),
        ("anthropic:claude-sonnet-5", Usage(output=MILLION), 10.0),
        ("anthropic:claude-sonnet-5", Usage(cache_write=MILLION), 2.5),
        ("anthropic:claude-sonnet-5", Usage(cache_read=MILLION), 0.2),
        ("anthropic:claude-opus-5", Usage(input=2_000, output=1_000, cache_read=10_000), 0.04),
        ("anthropic:claude-sonnet-4-5-20250929", Usage(input=MILLION), 3.0),
        ("anthropic:claude-haiku-5-5", Usage(input=100_000), 0.01),
        ("anthropic:claude-haiku-5-5", Usage(input=1, cache_read=100_000), 0.0050005),
        ("script:demo.yaml", Usage(input=MILLION), 0.0),
        ("replay:r-1", Usage(output=MILLION), 0.0),
        ("anthropic:brand-new", Usage(input=MILLION), None),
        ("claude-sonnet-5", Usage(input=MILLION), None),
    ],
)
def test_a_request_costs_what_the_list_says(model: str, usage: Usage, usd: float | None):
    assert cost_usd(model, usage) == (None if usd is None else pytest.approx(usd))


def test_the_list_is_dated_and_writes_to_the_cache_at_a_quarter_more_than_plain_input():
    prices = price_list()
    assert prices.as_of.year >= 2026
    for name, price in prices.models.items():
        assert price.cache_write == pytest.approx(1.25 * price.input), name
        assert price.cache_read < price.input < price.output, name
