"""What a request cost. The numbers are in prices.toml, with the day on which they were right."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from functools import lru_cache
from importlib.resources import files

from pydantic import Field

from retinue.agents.model.messages import Usage, Wire

_FREE = ("script", "replay")
_DATED = re.compile(r"-20\d{6}$")
_PER = 1_000_000


class Price(Wire):
    """USD per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_write: float = Field(ge=0)
    cache_read: float = Field(ge=0)

    def of(self, usage: Usage) -> float:
        paid = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_write * self.cache_write
            + usage.cache_read * self.cache_read
        )
        return paid / _PER


class LongPrice(Price):
    tokens: int = Field(gt=0)


class ModelPrice(Price):
    above: LongPrice | None = None

    def of(self, usage: Usage) -> float:
        whole_input = usage.input + usage.cache_read + usage.cache_write
        if self.above is not None and whole_input > self.above.tokens:
            return self.above.of(usage)
        return Price.of(self, usage)


class PriceList(Wire):
    as_of: date
    models: dict[str, ModelPrice]


@lru_cache(maxsize=1)
def price_list() -> PriceList:
    text = files("retinue.agents.model").joinpath("prices.toml").read_text(encoding="utf-8")
    return PriceList.model_validate(tomllib.loads(text))


def cost_usd(model: str, usage: Usage) -> float | None:
    """Of one request: prices may depend on its length. `model` is `PROVIDER:NAME`; None when the price is not known.

    Scripts and recordings cost nothing. The names are the provider's own: a server of one's own that uses them is not
    told apart.
    """
    provider, _, name = model.partition(":")
    if provider in _FREE:
        return 0.0
    known = price_list().models
    price = known.get(name) or known.get(_DATED.sub("", name))
    return price.of(usage) if price else None
