"""A download that is no text goes to a file of the run."""

from __future__ import annotations

import mimetypes
import os
import re
from pathlib import Path

from retinue.tools.errors import ToolError

_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


def save(folder: Path, call_id: str, content_type: str, data: bytes) -> Path:
    """Readable by the owner alone; a link in its place is replaced, never followed. Blocks."""
    suffix = mimetypes.guess_extension(content_type) or ".bin"
    name = _PLAIN.sub("_", call_id)[:100] or "page"
    path = folder / f"web-{name}{suffix}"
    scratch = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(scratch, path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ToolError(f"The download could not be saved: {error.strerror}.") from None
    return path
