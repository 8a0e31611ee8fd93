"""What an agent reads of the ledger when a new process of it begins: its own records, and mail stored for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from retinue.agents.model.messages import Wire
from retinue.agents.records import AgentRecord
from retinue.orchestrator.ledger.frames import Record
from retinue.orchestrator.ledger.parse import parse_agent_record

_MAIL = "mail_stored"


class Frame(Wire):
    """A ledger record on its way to another process."""

    kind: str
    body: dict[str, JsonValue]

    @classmethod
    def of(cls, record: Record) -> Frame:
        return cls(kind=record.kind, body=dict(record.body))


class Frames(Wire):
    frames: tuple[Frame, ...]


def mail_recipient(record: Record) -> str | None:
    """For whom a mail record is; None for every other record."""
    if record.kind != _MAIL:
        return None
    envelope = record.body.get("envelope")
    return cast(str, envelope["recipient"]) if isinstance(envelope, dict) else None


def agent_records(frames: Iterable[Frame]) -> list[AgentRecord]:
    """Typed, in order; what is not an agent's record (such as `opened`) is left out."""
    parsed = (parse_agent_record(frame.kind, frame.body) for frame in frames)
    return [record for record in parsed if record is not None]
