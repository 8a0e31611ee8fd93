"""What tools keep alive between the calls of one agent, and what ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar, cast


class Lives(Protocol):
    @property
    def is_alive(self) -> bool:
        """Whether something would be lost if the agent's process ended now."""
        ...

    async def close(self) -> None:
        """Nothing of it is left when this returns."""
        ...


L = TypeVar("L", bound=Lives)


class Lasting:
    """By name, made when first asked for."""

    def __init__(self) -> None:
        self._all: dict[str, Lives] = {}

    def get(self, name: str, make: Callable[[], L]) -> L:
        """The same one for the same name, which belongs to one tool."""
        if name not in self._all:
            self._all[name] = make()
        return cast("L", self._all[name])

    def alive(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, each in self._all.items() if each.is_alive))

    async def close(self) -> None:
        everything, self._all = self._all, {}
        await asyncio.gather(*(each.close() for each in everything.values()), return_exceptions=True)
