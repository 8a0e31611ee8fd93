"""Tools as functions of code: what the process is told of them, and the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from retinue.tools.base import AnyTool


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` in their order, of which the first `required` have to be given."""

    name: str
    parameters: tuple[str, ...]
    required: int
    doc: str

    def as_json(self) -> dict[str, JsonValue]:
        return {"name": self.name, "parameters": list(self.parameters), "doc": self.doc}

    def signature(self) -> str:
        given = (name if n < self.required else f"{name}=…" for n, name in enumerate(self.parameters))
        return f"{self.name}({', '.join(given)})"


def functions_of(tools: Iterable[AnyTool]) -> tuple[Function, ...]:
    """What has to be given comes first. Names that are none in Python (`-A` of Grep) are given in a dictionary."""
    return tuple(_function(tool) for tool in tools)


def _function(tool: AnyTool) -> Function:
    fields = {field.alias or name: field.is_required() for name, field in tool.Input.model_fields.items()}
    first = [name for name, required in fields.items() if required]
    rest = [name for name, required in fields.items() if not required]
    return Function(tool.name, (*first, *rest), len(first), tool.prompt())
