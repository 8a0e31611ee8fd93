"""What the model reads about a tool lies beside the tool, in `prompt.md`."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def prompt_beside(module_file: str) -> str:
    """The text of the `prompt.md` in the folder of that module, without the newline at its end."""
    return Path(module_file).with_name("prompt.md").read_text(encoding="utf-8").rstrip("\n")
