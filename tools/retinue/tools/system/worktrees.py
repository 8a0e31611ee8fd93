"""What both worktree tools know: names, and how a loss is said. Pure."""

from __future__ import annotations

import re

from retinue.tools.system.ports import WorktreeLoss
from retinue.tools.text import counted

MAX_NAME = 64
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def is_name(name: str) -> bool:
    """Letters, digits and . _ - in parts with / between them; no part that means another folder."""
    return len(name) <= MAX_NAME and all(
        _PART.fullmatch(part) and ".." not in part and not part.endswith((".", ".lock")) for part in name.split("/")
    )


def loss_text(loss: WorktreeLoss) -> str:
    """What would be gone; empty when nothing would."""
    parts = [counted(loss.files, "changed file")] if loss.files else []
    parts += [counted(loss.commits, "commit") + " that no other branch has"] if loss.commits else []
    return " and ".join(parts)
