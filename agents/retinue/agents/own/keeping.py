"""What an agent keeps beside its conversation: read from its records, changed by one record each."""

from __future__ import annotations

from typing import Generic, TypeVar

from retinue.agents.journal import Journal
from retinue.agents.model.messages import Wire
from retinue.agents.records import KeptName, StateKept

Value = TypeVar("Value", bound=Wire)


class Kept(Generic[Value]):
    """One thing. A value that was recorded by a call stands for that call also when it is made again."""

    def __init__(self, journal: Journal, name: KeptName, model: type[Value]) -> None:
        self._journal = journal
        self._name: KeptName = name
        self._model = model

    @property
    def value(self) -> Value | None:
        """None while nothing was kept."""
        record = self._record
        return None if record is None else self._model.model_validate(record.value)

    def of_call(self, key: str) -> Value | None:
        """What the call of that key kept, if it was the last to do so."""
        record = self._record
        return self.value if record is not None and record.key == key else None

    async def keep(self, key: str, value: Value) -> None:
        """Durable on return: nobody hears of it before."""
        await self._journal.commit(StateKept(name=self._name, key=key, value=value.model_dump(mode="json")))

    @property
    def step(self) -> int:
        """The number of the request that the agent is at."""
        return self._journal.conversation.step

    @property
    def _record(self) -> StateKept | None:
        return self._journal.conversation.kept.get(self._name)
