"""Results for calls that have none of their own: what the model is told when a call was called off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from retinue.tools.execution.calls import CallResult


class Cause(Enum):
    """Why; the value is the stable error class."""

    SIBLING = "SiblingFailed"
    ABORTED = "Aborted"
    WITHDRAWN = "Withdrawn"
    INTERRUPTED = "Interrupted"


@dataclass(frozen=True, slots=True)
class Closing:
    """What called the calls of a message off. `detail` is the failed call, or the reason of the abort."""

    cause: Cause
    detail: str = ""

    def __str__(self) -> str:
        match self.cause:
            case Cause.SIBLING:
                return f"{self.detail} of the same message failed"
            case Cause.ABORTED:
                return f"the work was called off ({self.detail})" if self.detail else "the work was called off"
            case Cause.WITHDRAWN:
                return "the message broke off before any of its calls had begun, and was withdrawn"
            case Cause.INTERRUPTED:
                return "it was cancelled"


def synthetic(
    call: str, name: str, closing: Closing, *, began: bool = False, read_only: bool = False, stuck: bool = False
) -> CallResult:
    """`began`: its effect may have happened. `stuck`: it was told to stop, and had not when its time was up."""
    return CallResult(
        call_id=call,
        name=name,
        content=_words(closing, began=began, read_only=read_only, stuck=stuck),
        is_error=True,
        ran=began,
        error_class=closing.cause.value,
        title=name,
    )


def _words(closing: Closing, *, began: bool, read_only: bool, stuck: bool) -> str:
    if not began:
        return f"Not run: {closing}."
    if stuck:
        return (
            f"Interrupted: {closing}. It was told to stop and has not: it may still be at work, its outcome is unknown."
        )
    if read_only:
        return f"Interrupted: {closing}."
    return f"Interrupted, outcome unknown: {closing}. Look at what it did before you repeat it."
