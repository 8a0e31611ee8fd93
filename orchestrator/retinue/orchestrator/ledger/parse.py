"""From a frame's kind and body to a typed record, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pydantic import JsonValue, ValidationError
from typing_extensions import TypeIs

from retinue.agents.model.messages import Wire
from retinue.agents.records import AGENT_RECORD, AgentRecord
from retinue.orchestrator.ledger.records import TEAM_RECORD, TeamRecord

AnyRecord = AgentRecord | TeamRecord


def _types(union: object) -> tuple[type[Wire], ...]:
    return get_args(get_args(union)[0])


_TEAM_TYPES = _types(TeamRecord)
_TEAM_KINDS = frozenset(str(t.model_fields["kind"].default) for t in _TEAM_TYPES)
_AGENT_KINDS = frozenset(str(t.model_fields["kind"].default) for t in _types(AgentRecord))


def parse_team_record(kind: str, body: Mapping[str, JsonValue]) -> TeamRecord | None:
    """None for a kind that is not the team's, or that this build cannot read."""
    if kind not in _TEAM_KINDS:
        return None
    try:
        return TEAM_RECORD.validate_python({**body, "kind": kind})
    except ValidationError:
        return None


def parse_agent_record(kind: str, body: Mapping[str, JsonValue]) -> AgentRecord | None:
    """None for a kind that is not an agent's, or that this build cannot read."""
    if kind not in _AGENT_KINDS:
        return None
    try:
        return AGENT_RECORD.validate_python({**body, "kind": kind})
    except ValidationError:
        return None


def parse_record(kind: str, body: Mapping[str, JsonValue]) -> AnyRecord | None:
    return parse_agent_record(kind, body) or parse_team_record(kind, body)


def is_team_record(record: AnyRecord) -> TypeIs[TeamRecord]:
    return isinstance(record, _TEAM_TYPES)


def body_of(record: Wire) -> tuple[str, dict[str, JsonValue]]:
    """(kind, body without the kind)."""
    body: dict[str, JsonValue] = record.model_dump(mode="python")
    kind = body.pop("kind")
    assert isinstance(kind, str)
    return kind, body
