"""Reports for people."""

from shelf.stock import Item


def top(items: list[Item], number: int) -> list[str]:
    """The names of the items with the highest counts; equal counts in order of name."""
    ranked = sorted(items, key=lambda item: (item.count, item.name))
    return [item.name for item in ranked[:number]]
