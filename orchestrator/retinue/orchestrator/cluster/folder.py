"""The folder of one local cluster: what lies in it, and the locks that say who is at work."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from retinue.orchestrator.cluster.identity import KEY_LENGTH, ClusterRecord, Orders
from retinue.orchestrator.state.paths import write_private
from retinue.tools.errors import EnvironmentProblem

_KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")
_LOG_LINES = 12
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """Paths of one cluster. Only its keeper holds `keeper.lock`, for as long as it lives."""

    root: Path

    @property
    def key(self) -> str:
        return self.root.name

    @property
    def base(self) -> Path:
        return self.root.parent

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def log(self) -> Path:
        return self.root / "keeper.log"

    @property
    def ray(self) -> Path:
        """One letter: Ray's sockets lie below, and their paths are limited."""
        return self.root / "r"

    @property
    def address_file(self) -> Path:
        """Ray writes it when its daemons are up."""
        return self.ray / "ray_current_cluster"

    @property
    def retired(self) -> Path:
        return self.root / "retired"

    @property
    def asked(self) -> Path:
        """Its time of change says when a command was last told to use this cluster."""
        return self.root / "asked"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def keeper_lock(self) -> Path:
        return self.root / "keeper.lock"

    def prepare(self, orders: Orders, token: str) -> None:
        """From nothing, or from what a dead keeper left."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(mode=0o700)
        self.runs.mkdir(mode=0o700)
        write_private(self.token, token)
        write_private(self.root / "orders.json", orders.model_dump_json())
        self.keeper_lock.touch(mode=0o600)
        self.asked.touch(mode=0o600)

    def orders(self) -> Orders | None:
        try:
            return Orders.model_validate_json((self.root / "orders.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def record(self) -> ClusterRecord | None:
        try:
            return ClusterRecord.model_validate_json((self.root / "record.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def write_record(self, record: ClusterRecord) -> None:
        write_private(self.root / "record.json", record.model_dump_json())

    def drop_record(self) -> None:
        (self.root / "record.json").unlink(missing_ok=True)

    def has_keeper(self) -> bool:
        try:
            fd = os.open(self.keeper_lock, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def register(self, run_id: str, lock: Path) -> None:
        if not _RUN_ID.fullmatch(run_id):
            raise ValueError(f"{run_id!r} cannot be the name of a file")
        write_private(self.runs / run_id, os.fspath(lock.absolute()))

    def release(self, run_id: str) -> None:
        (self.runs / run_id).unlink(missing_ok=True)

    def registered(self) -> dict[str, Path]:
        """Run id → the lock of the run."""
        found: dict[str, Path] = {}
        try:
            for entry in self.runs.iterdir():
                if _RUN_ID.fullmatch(entry.name):
                    found[entry.name] = Path(entry.read_text(encoding="utf-8", errors="surrogateescape"))
        except FileNotFoundError:
            pass
        return found

    def last_lines(self) -> str:
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-_LOG_LINES:])


def clusters_in(base: Path) -> list[ClusterFolder]:
    try:
        names = sorted(os.listdir(base))
    except FileNotFoundError:
        return []
    return [ClusterFolder(base / name) for name in names if _KEY.fullmatch(name)]


def own_base(base: Path) -> Path:
    """Make the folder of all clusters of this user. Refuse one that somebody else made or can write."""
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        found = base.lstat()
    except OSError as error:
        raise EnvironmentProblem(f"{base} cannot be made for the local cluster: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise EnvironmentProblem(
            f"{base} must be a folder that belongs to you and that nobody else can open: look who made it, then "
            f"`chmod 700 {base}` or remove it"
        )
    return base


@contextmanager
def base_lock(base: Path, *, wait: bool = True) -> Generator[bool]:
    """Held while a cluster is looked up, started or ended. Says whether it was taken."""
    fd = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
