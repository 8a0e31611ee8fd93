"""Where runs lie on disk, and how one is named, made, found, and put in the trash. Only this user may look inside."""

from __future__ import annotations

import base64
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from retinue.orchestrator.ledger.lock import is_held, mounts_of_this_machine, refuse_network_filesystem
from retinue.orchestrator.workspaces.names import check_run
from retinue.tools.errors import EnvironmentProblem, SpecError, StateError

PRIVATE_FOLDER = 0o700
_NAME_LENGTH = 40
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class RunDir:
    """The directory of one run. A run is listed, read, resumed and replayed from it alone."""

    root: Path

    @property
    def run_id(self) -> str:
        return self.root.name

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def spec(self) -> Path:
        return self.root / "spec.yaml"

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.rlog"

    @property
    def control_key(self) -> Path:
        """What its holder can do, the human can: approve, change modes, resume, stop."""
        return self.root / "control.key"

    @property
    def env(self) -> Path:
        """Credentials and the tools' environment. Never in the ledger."""
        return self.root / "env.json"

    @property
    def tool_results(self) -> Path:
        return self.root / "tool-results"

    @property
    def tasks(self) -> Path:
        return self.root / "tasks"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def read_control_key(self) -> str:
        try:
            return self.control_key.read_text(encoding="ascii").strip()
        except OSError as error:
            raise StateError(f"the control key {self.control_key} cannot be read: {error.strerror}") from error

    def is_live(self) -> bool:
        return is_held(self.lock)


class StateDir:
    """The folder of all runs of this user."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.runs = self.root / "runs"
        self.trash = self.root / "trash"

    def create(self, run_id: str, *, random: Callable[[int], bytes] = os.urandom) -> RunDir:
        """A new run with its control key and folders. SpecError: bad id. StateError: the id is taken."""
        self.refuse_taken(run_id)
        self._own(self.runs)
        refuse_network_filesystem(self.runs, mounts_of_this_machine())
        run = RunDir(self.runs / run_id)
        try:
            run.root.mkdir(mode=PRIVATE_FOLDER)
        except FileExistsError:
            raise _taken(run_id) from None
        except OSError as error:
            raise _unusable(run.root, error) from error
        for folder in (run.tool_results, run.tasks, run.tmp):
            folder.mkdir(mode=PRIVATE_FOLDER)
        write_private(run.control_key, random(32).hex() + "\n")
        return run

    def refuse_taken(self, run_id: str) -> None:
        """Raises as `create` would, and makes nothing."""
        if (self.runs / check_run(run_id)).exists():
            raise _taken(run_id)

    def all(self) -> list[RunDir]:
        """Newest first."""
        return _newest_first(self.runs)

    def find(self, prefix: str) -> RunDir:
        """The run with this id, or the only one whose id starts so."""
        runs = self.all()
        exact = [run for run in runs if run.run_id == prefix]
        found = exact or [run for run in runs if prefix and run.run_id.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        if found:
            raise StateError(f"{prefix!r} fits several runs, write more of the id of one: {_listed(found)}")
        have = f"there are: {_listed(runs)}" if runs else "there is none yet; `retinue up SPEC` starts one"
        raise StateError(f"no run {prefix!r} in {self.runs}; {have}")

    def to_trash(self, run: RunDir) -> RunDir:
        """One rename; `from_trash` undoes it. A live run is refused."""
        if run.is_live():
            raise StateError(f"run {run.run_id} is live: end it first with `retinue down {run.run_id}`")
        self._own(self.trash)
        target = self.trash / run.run_id
        count = 0
        while target.exists():
            count += 1
            target = self.trash / f"{run.run_id}.{count}"
        try:
            run.root.rename(target)
        except OSError as error:
            raise _unusable(run.root, error) from error
        return RunDir(target)

    def in_trash(self) -> list[RunDir]:
        """Newest first. An id that was used and thrown away again ends in `.1`, `.2` …"""
        return _newest_first(self.trash)

    def from_trash(self, run_id: str) -> RunDir:
        """Back to where it was: worktrees name that place."""
        thrown = [run for run in self.in_trash() if run_id in (run.run_id, _plain(run.run_id))]
        if not thrown:
            raise StateError(f"no run {run_id!r} in {self.trash}; there are: {_listed(self.in_trash()) or 'none'}")
        back = RunDir(self.runs / _plain(thrown[0].run_id))
        if back.root.exists():
            raise StateError(f"run {back.run_id} exists again: remove it first with `retinue clean {back.run_id}`")
        self._own(self.runs)
        try:
            thrown[0].root.rename(back.root)
        except OSError as error:
            raise _unusable(thrown[0].root, error) from error
        return back

    def _own(self, folder: Path) -> None:
        """Make it. Refuse one that somebody else could fill or exchange."""
        try:
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            found = folder.lstat()
        except OSError as error:
            raise _unusable(folder, error) from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise EnvironmentProblem(
                f"{folder} must be a folder that belongs to you and that nobody else can write: "
                f"`chmod 700 {folder}`, or choose another place with --state-dir"
            )


def state_root(environ: Mapping[str, str], flag: Path | None = None) -> Path:
    """--state-dir, or $XDG_STATE_HOME/retinue, or ~/.local/state/retinue."""
    if flag is not None:
        return flag.absolute()
    configured = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(configured):  # a relative one is to be ignored, says the XDG specification
        return Path(configured) / "retinue"
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        raise EnvironmentProblem("neither XDG_STATE_HOME nor HOME names a folder: say where with --state-dir")
    return Path(home) / ".local" / "state" / "retinue"


def new_run_id(name: str, today: date, random: bytes) -> str:
    """`<name>-<yyyymmdd>-<6 base32>` from a team's name and at least 4 random bytes. A path part and a ref part."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_NAME_LENGTH].strip("-") or "run"
    token = base64.b32encode(random).decode("ascii").lower()[:6]
    return check_run(f"{slug}-{today:%Y%m%d}-{token}")


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, readable by this user only, on disk when it returns."""
    try:
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise _unusable(path, error) from error


def _newest_first(folder: Path) -> list[RunDir]:
    try:
        found = [(_made(entry), entry.name, RunDir(entry)) for entry in folder.iterdir() if _is_run(entry)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(folder, error) from error
    return [run for _, _, run in sorted(found, key=lambda item: item[:2], reverse=True)]


def _made(root: Path) -> float:
    """The control key is written once, when the run is made; a directory's own time changes later."""
    try:
        return RunDir(root).control_key.stat().st_mtime
    except OSError:
        return 0.0


def _is_run(entry: Path) -> bool:
    try:
        check_run(_plain(entry.name))
    except SpecError:
        return False
    return entry.is_dir()


def _plain(name: str) -> str:
    return re.sub(r"\.[0-9]+$", "", name)


def _listed(runs: list[RunDir]) -> str:
    more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return ", ".join(run.run_id for run in runs[:_SHOWN]) + more


def _taken(run_id: str) -> StateError:
    return StateError(
        f"run {run_id} exists already: choose another --run-id, or continue it with `retinue resume {run_id}`"
    )


def _unusable(path: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{path} cannot be used ({error.strerror}): check permissions and space, or choose another with --state-dir"
    )
