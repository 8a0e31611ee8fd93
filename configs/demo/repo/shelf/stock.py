"""What is on the shelf, and what has to be ordered."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    name: str
    count: int
    minimum: int


def to_order(items: list[Item]) -> dict[str, int]:
    """How many of each item are missing up to twice its minimum; an item at its minimum is low already."""
    return {item.name: 2 * item.minimum - item.count for item in items if item.count < item.minimum}
