"""`doctor`: is everything there that a run needs?"""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    del app
