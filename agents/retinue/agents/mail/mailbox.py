"""An agent's mail: what is stored, what is known already, what comes next. Pure; a fold over records.

Mail waits in the order of arrival, so that the order of each sender is kept. It is processed once its id is in a
`request` record. Word of a background task's end is processed, too, when the result of a call tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

from retinue.agents.mail.envelopes import BackgroundEnd, Envelope, Receipt, ShutdownRequest, end_of
from retinue.agents.records import AgentRecord, MailStored, PromptRefused, RequestSent, ToolFinished, TurnClosed
from retinue.agents.tokens import estimate_tokens

CAPACITY = 1_000
CAPACITY_TOKENS = 200_000


@dataclass(frozen=True, slots=True)
class Taken:
    """The mail of one step, in order, and what is left for later ones."""

    envelopes: tuple[Envelope, ...] = ()
    left: int = 0
    left_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    envelope: Envelope
    tokens: int


class Mailbox:
    def __init__(self, capacity: int = CAPACITY, capacity_tokens: int = CAPACITY_TOKENS) -> None:
        self._capacity = capacity
        self._capacity_tokens = capacity_tokens
        self._known: set[str] = set()
        self._waiting: dict[str, _Waiting] = {}
        self._tokens = 0
        self._asked_to_end = False
        self._ended = False

    # --- questions ---

    def accept(self, envelope: Envelope) -> Receipt:
        """What to answer. `stored` asks the caller to record it; nothing changes before that record is applied."""
        if envelope.id in self._known:
            return Receipt(outcome="duplicate")
        if self._ended:
            return Receipt(outcome="no_such_agent", text=f"{envelope.recipient} has ended")
        tokens = _size(envelope)
        urgent = isinstance(envelope.body, ShutdownRequest | BackgroundEnd)
        if self._waiting and not urgent and not self._has_room(tokens):
            return Receipt(outcome="full", text=self._fullness(envelope.recipient, tokens))
        return Receipt(outcome="stored")

    def take(self, max_tokens: int) -> Taken:
        """As much as fits, in order, at least one; a single message that is larger comes alone."""
        taken: list[Envelope] = []
        used = 0
        for waiting in self._waiting.values():
            if taken and used + waiting.tokens > max_tokens:
                break
            taken.append(waiting.envelope)
            used += waiting.tokens
        return Taken(tuple(taken), len(self._waiting) - len(taken), self._tokens - used)

    @property
    def unread(self) -> int:
        return len(self._waiting)

    def knows(self, mail: str) -> bool:
        """Whether it has come, or need not come any more."""
        return mail in self._known

    @property
    def asked_to_end(self) -> bool:
        """A shutdown request has come; read or not, the agent ends with its turn."""
        return self._asked_to_end

    @property
    def ended(self) -> bool:
        return self._ended

    # --- the fold ---

    def apply(self, record: AgentRecord) -> None:
        match record:
            case MailStored(envelope=envelope):
                self._store(envelope)
            case RequestSent(mail=processed):
                for mail in processed:
                    self._drop(mail)
            case PromptRefused(mail=mail):
                self._drop(mail)
            case ToolFinished(result=result):
                for task in result.told:
                    self._drop(end_of(task))
            case TurnClosed(reason="shutdown"):
                self._ended = True
                for mail in [w.envelope.id for w in self._waiting.values() if _ends(w.envelope)]:
                    self._drop(mail)
            case _:
                pass

    def _store(self, envelope: Envelope) -> None:
        if envelope.id in self._known:
            return
        self._known.add(envelope.id)
        self._waiting[envelope.id] = waiting = _Waiting(envelope, _size(envelope))
        self._tokens += waiting.tokens
        self._asked_to_end = self._asked_to_end or _ends(envelope)

    def _drop(self, mail: str) -> None:
        self._known.add(mail)
        waiting = self._waiting.pop(mail, None)
        self._tokens -= waiting.tokens if waiting else 0

    def _has_room(self, tokens: int) -> bool:
        return len(self._waiting) < self._capacity and self._tokens + tokens <= self._capacity_tokens

    def _fullness(self, recipient: str, tokens: int) -> str:
        return (
            f"{recipient} has {len(self._waiting)} unread messages of about {self._tokens} tokens "
            f"(at most {self._capacity} and {self._capacity_tokens}), and this one has about {tokens}; "
            "send less, or later"
        )


def _ends(envelope: Envelope) -> bool:
    return isinstance(envelope.body, ShutdownRequest)


def _size(envelope: Envelope) -> int:
    return estimate_tokens(envelope.body.model_dump_json())
