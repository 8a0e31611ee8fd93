"""What an agent has read, so that it never overwrites what it has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class Seen(BaseModel):
    """One file as it was last read or written: modification time in ns, size, and a digest of the bytes.

    `partial` is true when the model saw only a part, which is not enough to overwrite the whole. `shown` names the part
    that the last Read showed, empty when it may not be pointed back to.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mtime_ns: int
    size: int
    digest: str
    partial: bool = False
    shown: str = ""


class FileState:
    """The read-state of one agent; restored from the ledger after a restart."""

    def __init__(self, seen: dict[str, Seen] | None = None) -> None:
        self._seen = dict(seen or {})
        self._changed: dict[str, Seen] = {}

    def get(self, path: Path) -> Seen | None:
        return self._seen.get(str(path))

    def put(self, path: Path, seen: Seen) -> None:
        self._seen[str(path)] = seen
        self._changed[str(path)] = seen

    def take_changes(self) -> dict[str, Seen]:
        """What was put since the last time; recorded with the call that put it."""
        changed, self._changed = self._changed, {}
        return changed

    def __iter__(self) -> Iterator[tuple[str, Seen]]:
        return iter(self._seen.items())
