"""The moments at which hooks are asked, and what an answer can do at each. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Event = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Notification",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "WorktreeCreate",
    "WorktreeRemove",
]
EVENTS: tuple[Event, ...] = get_args(Event)
BY_NAME: dict[str, Event] = {str(event): event for event in EVENTS}

TOOL_EVENTS: frozenset[Event] = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"))
"""Those about one call: only they know the key `if`."""

COMMAND_S = 600.0
PROMPT_S = 30.0
SESSION_END_S = 1.5
MOST_SESSION_END_S = 60.0


@dataclass(frozen=True, slots=True)
class Powers:
    """What answers can do.

    exit_blocks    exit code 2 stops what is about to happen, or goes back to the agent as feedback
    decision       `"decision": "block"` does the same
    plain_context  plain output of a hook that went well is told to the agent
    context        `additionalContext` is
    halts          `"continue": false` ends the turn
    asks_models    hooks of the kind `prompt` may stand here
    """

    exit_blocks: bool = False
    decision: bool = False
    plain_context: bool = False
    context: bool = False
    halts: bool = True
    asks_models: bool = False


_ASKED = Powers(exit_blocks=True, decision=True, context=True, asks_models=True)

POWERS: dict[Event, Powers] = {
    "PreToolUse": _ASKED,
    "PostToolUse": _ASKED,
    "PostToolUseFailure": _ASKED,
    "PermissionRequest": Powers(asks_models=True),
    "UserPromptSubmit": Powers(exit_blocks=True, decision=True, plain_context=True, context=True, asks_models=True),
    "SessionStart": Powers(plain_context=True, context=True),
    "SessionEnd": Powers(halts=False),
    "Stop": _ASKED,
    "SubagentStart": Powers(context=True),
    "SubagentStop": _ASKED,
    "PreCompact": Powers(exit_blocks=True, decision=True),
    "Notification": Powers(halts=False),
    "TeammateIdle": Powers(exit_blocks=True, asks_models=True),
    "TaskCreated": Powers(exit_blocks=True, decision=True, halts=False, asks_models=True),
    "TaskCompleted": Powers(exit_blocks=True, asks_models=True),
    "WorktreeCreate": Powers(halts=False),
    "WorktreeRemove": Powers(halts=False),
}


def deadline_of(event: Event, kind: str) -> float:
    """How long a hook that does not say may take, in seconds."""
    if event == "SessionEnd":
        return SESSION_END_S
    if event == "UserPromptSubmit" or kind == "prompt":
        return PROMPT_S
    return COMMAND_S
