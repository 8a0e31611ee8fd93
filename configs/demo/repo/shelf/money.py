"""Amounts in cents."""


def with_tax(cents: int, percent: int) -> int:
    """The price with tax, rounded half up to a whole cent."""
    return (cents * (100 + percent)) // 100


def split(cents: int, people: int) -> list[int]:
    """Shares that differ by one cent at most and add up to the whole."""
    share, rest = divmod(cents, people)
    return [share + (1 if number < rest else 0) for number in range(people)]
