"""How agents are told what hooks say. Pure."""

from __future__ import annotations

from retinue.tools.text import for_model


def told(event: str, text: str) -> str:
    """Marked as a hook's, which may quote anything; it cannot pass for anybody else's words."""
    return f"<system-reminder>\n{event} hook: {for_model(text.strip())}\n</system-reminder>"
