"""Large results go to a file of the run; the model gets the beginning and the path."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.base import Attachment
from retinue.tools.execution.calls import CallResult, Media
from retinue.tools.results.limits import MESSAGE_CHARS, PREVIEW_BYTES, preview_of, to_spill

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
_BLOCK_TAG = re.compile(r"<(?=/?persisted-output)", re.IGNORECASE)
_FRAME_CHARS = 1_000
"""Room for the words, and the path, around a preview."""
_KEPT_CHARS = PREVIEW_BYTES + _FRAME_CHARS


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the model is shown, and where the whole is; None when nothing was put aside."""

    content: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class ResultStore:
    """`redact` takes the values out that were given as secrets, before anything is written."""

    folder: Path
    redact: Callable[[str], str] = str

    def fit(self, call_id: str, content: str, limit: int) -> Fitted:
        """Unchanged when within the limit. The same call and content always give the same file and the same text."""
        return Fitted(content) if len(content) <= limit else self._spill(call_id, content)

    def fit_message(
        self, results: Sequence[CallResult], limit: int = MESSAGE_CHARS, *, spared: Collection[str] = ()
    ) -> tuple[CallResult, ...]:
        """All results of one assistant message together: the largest are put aside first.

        One that was put aside before is a preview by now and stays: writing it again would lose the whole. Those of
        tools in `spared` stay as long as that can be: who reads parts of a file would have to read them again.
        """
        whole = [i for i, result in enumerate(results) if not result.spilled_to]
        aside: set[int] = set()
        for candidates in ([i for i in whole if results[i].name not in spared], whole):
            left = limit - sum(_KEPT_CHARS if i in aside else len(each.content) for i, each in enumerate(results))
            if left >= 0:
                break
            sizes = [len(results[i].content) for i in candidates if i not in aside]
            free = [i for i in candidates if i not in aside]
            aside |= {free[i] for i in to_spill(sizes, _KEPT_CHARS, left + sum(sizes))}
        return tuple(self._put_aside(result) if i in aside else result for i, result in enumerate(results))

    def keep(self, attachment: Attachment) -> Media:
        """Write what is no text to a file named by its content. OSError when that cannot be done."""
        digest = hashlib.sha256(attachment.data).hexdigest()
        kind = re.sub("[^a-z0-9]", "", attachment.media_type.rpartition("/")[2].lower())[:10]
        path = self.folder / f"m-{digest[:32]}.{kind}"
        _write_private(path, attachment.data)
        return Media(
            media_type=attachment.media_type,
            path=str(path),
            digest=digest,
            size=len(attachment.data),
            tokens=attachment.tokens,
        )

    def path_of(self, call_id: str) -> Path:
        """An id that is no plain file name is replaced by its digest: it cannot lead out of the folder."""
        plain = _PLAIN_ID.match(call_id) is not None
        name = call_id if plain else f"x-{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()}"
        return self.folder / f"{name}.txt"

    def _put_aside(self, result: CallResult) -> CallResult:
        fitted = self._spill(result.call_id, result.content)
        path = str(fitted.path) if fitted.path else None
        return result.model_copy(update={"content": fitted.content, "spilled_to": path})

    def _spill(self, call_id: str, content: str) -> Fitted:
        clean = self.redact(content)
        head = _BLOCK_TAG.sub("&lt;", preview_of(clean))
        path = self.path_of(call_id)
        try:
            _write_private(path, clean.encode("utf-8", "surrogatepass"))
        except OSError as error:
            reason = error.strerror or "unknown reason"
            return Fitted(_block(clean, f"The rest is lost: it could not be written ({reason}).", head))
        return Fitted(_block(clean, f"All of it is in: {path}\nRead parts of that file as needed.", head), path)


def _block(content: str, where: str, head: str) -> str:
    size = f"The output is too large to show ({len(content):,} characters)."
    return f"<persisted-output>\n{size} {where}\n\nIts beginning:\n{head}\n</persisted-output>"


def _write_private(path: Path, data: bytes) -> None:
    """Whole or not at all, readable by the owner alone; a link in its place is replaced, never followed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
