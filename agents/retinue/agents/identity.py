"""Names and ids. Every id that crosses a process derives from what caused it, so that doing it again is the same thing.

Pure: nothing here is random.
"""

from __future__ import annotations

import hashlib
import re

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
RESERVED_NAMES = frozenset({"result", "tip", "base", "team", "human"})
_MOST_NAME = 40


def agent_id(name: str, number: int) -> str:
    """`name~n`; the number is never used again for that name."""
    return f"{name}~{number}"


def name_of(agent: str) -> str:
    """The name in an agent id; what is none (`human`, `team`) is its own name."""
    return agent.partition("~")[0]


def replica_names(name: str, replicas: int) -> tuple[str, ...]:
    """`name-1` … `name-n`; one alone keeps its name."""
    if replicas == 1:
        return (name,)
    return tuple(f"{name}-{number}" for number in range(1, replicas + 1))


def call_key(run: str, agent: str, turn: int, tool_use_id: str) -> str:
    """Idempotency key of one call: the same before and after a restart.

    It begins with run and agent: what a call's command leaves behind is searched for by that.
    """
    return f"{run}/{agent}/call-{_digest(run, agent, str(turn), tool_use_id)}"


def envelope_id(run: str, sender: str, key: str, recipient: str) -> str:
    """Of the message that the call `key` sends to one recipient."""
    return f"mail-{_digest(run, sender, key, recipient)}"


def child_id(key: str, parent_name: str) -> str:
    """Of the sub-agent that the call `key` starts. Its name tells whose child it is."""
    stem = f"-{_digest(key)[:8]}"
    return agent_id(f"{name_of(parent_name)[: _MOST_NAME - len(stem)].rstrip('-')}{stem}", 1)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
