"""What the model reads about a tool lies beside the tool, in `prompt.md`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path


@cache
def prompt_of(kind: type) -> str:
    """The `prompt.md` in the folder of that class, or of the next of its bases that has one; empty without any."""
    for each in kind.__mro__:
        module = sys.modules.get(each.__module__)
        file = getattr(module, "__file__", None)
        if file and Path(file).name == "tool.py" and (beside := Path(file).with_name("prompt.md")).is_file():
            return beside.read_text(encoding="utf-8").rstrip("\n")
    return ""
