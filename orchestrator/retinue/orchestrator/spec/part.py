"""What all parts of a spec have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecPart(BaseModel):
    """Base of every part: frozen, unknown keys refused, the docstring of a field is what editors show."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
