"""Our own git, run as a process: every safety flag, a deadline, no prompt, no configuration but the repository's.

Agents run their git themselves, with their own shell runner. This one never discovers a repository from a directory
that an agent can write: callers name the repository with `git_dir`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem

SAFE_CONFIG: tuple[tuple[str, str], ...] = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.sshCommand", ""),
    ("core.askPass", ""),
    ("core.editor", ":"),
    ("core.pager", "cat"),
    ("core.alternateRefsCommand", ":"),
    ("credential.helper", ""),
    ("protocol.ext.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("merge.verifySignatures", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("advice.addEmbeddedRepo", "false"),
)
FETCH_FLAGS: tuple[str, ...] = (
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-prune",
    "--quiet",
)
DEADLINE_S = 120.0
STDERR_TAIL = 2_000


class GitError(EnvironmentProblem):
    """A git command of ours failed or took too long; the message says what it was for and what git said."""


class GitRefused(GitError):
    """Git ran and said no, because of what it was given: the machine had all that it needed."""


_LACKS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN)
# Of git itself, without the words of the system.
_LACKING = ("out of memory", "cannot fork", "unable to fork")


def lacks(error: OSError) -> bool:
    """Whether the machine is short of something, whoever asked for it."""
    return error.errno in _LACKS


def _refusal(message: str, stderr: str, code: int) -> GitError:
    said = stderr.lower()
    machine = code < 0 or any(words in said for words in (*_LACKING, *(os.strerror(n).lower() for n in _LACKS)))
    return GitError(message) if machine else GitRefused(message)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a commit is by."""

    name: str
    email: str

    def environment(self) -> dict[str, str]:
        return {
            "GIT_AUTHOR_NAME": self.name,
            "GIT_AUTHOR_EMAIL": self.email,
            "GIT_COMMITTER_NAME": self.name,
            "GIT_COMMITTER_EMAIL": self.email,
        }


OURSELVES = Identity("retinue", "retinue@localhost")


@dataclass(frozen=True, slots=True)
class GitResult:
    """What a command printed. What is not UTF-8 survives as surrogates: file names and patches pass through."""

    stdout: str
    stderr: str
    code: int

    @property
    def line(self) -> str:
        return self.stdout.strip()

    def split(self, separator: str = "\0") -> tuple[str, ...]:
        return tuple(part for part in self.stdout.split(separator) if part)


def upload_pack_command() -> str:
    """What `fetch` starts on the other side. Git drops `-c` flags for that process, so they are said again."""
    flags = " ".join(f"-c '{key}={value}'" for key, value in SAFE_CONFIG)
    return f"git {flags} -c uploadpack.allowAnySHA1InWant=true upload-pack"


@dataclass(slots=True)
class Git:
    """Runs git. `search_path` is the PATH that git and its helpers are found on; at most `parallel` run at once."""

    search_path: str = field(default_factory=lambda: os.environ.get("PATH", os.defpath))
    deadline_s: float = DEADLINE_S
    parallel: int = 16
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.parallel)

    async def run(
        self,
        args: Sequence[str],
        *,
        purpose: str = "",
        git_dir: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        config: Sequence[tuple[str, str]] = (),
        stdin: str | None = None,
        check: bool = True,
        deadline_s: float | None = None,
    ) -> GitResult:
        """Run one command. With `check`, a non-zero exit raises GitError or GitRefused; a missed deadline GitError."""
        environment = {**self._environment(git_dir, config), **(env or {})}
        what = purpose or f"git {args[0]}"
        async with self._slots:
            result = await _execute(
                ["git", *args], environment, cwd or git_dir or Path("/"), stdin, deadline_s or self.deadline_s, what
            )
        if check and result.code != 0:
            message = f"{what}: git {args[0]} failed with exit code {result.code}: {_tail(result.stderr)}"
            raise _refusal(message, result.stderr, result.code)
        return result

    def _environment(self, git_dir: Path | None, config: Sequence[tuple[str, str]]) -> dict[str, str]:
        pairs = (*SAFE_CONFIG, *config)
        environment = {
            "PATH": self.search_path,
            "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": "file",
            "GIT_CONFIG_COUNT": str(len(pairs)),
        }
        for index, (key, value) in enumerate(pairs):
            environment[f"GIT_CONFIG_KEY_{index}"] = key
            environment[f"GIT_CONFIG_VALUE_{index}"] = value
        if git_dir is not None:
            environment["GIT_DIR"] = str(git_dir)
        return environment


async def run_as_user(
    args: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str | None = None, deadline_s: float
) -> GitResult:
    """The user's own git, with the user's environment, configuration and hooks, in the user's own checkout."""
    environment = {**env, "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":"}
    return await _execute(["git", *args], environment, cwd, stdin, deadline_s, f"git {args[0]} in {cwd}")


async def _execute(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, stdin: str | None, deadline_s: float, what: str
) -> GitResult:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            env=env,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        # Called off in the middle of its start, a process would run on with nobody to stop it.
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await starting)
        raise
    except OSError as error:
        raise GitError(f"{what}: {_not_started(error, cwd)}") from error
    data = None if stdin is None else stdin.encode("utf-8", "surrogateescape")
    try:
        async with asyncio.timeout(deadline_s):
            out, err = await process.communicate(data)
    except TimeoutError:
        raise GitError(f"{what}: git {argv[1]} did not finish within {deadline_s:g} s and was stopped") from None
    finally:
        await _end(process)
    return GitResult(_text(out), _text(err), process.returncode or 0)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _not_started(error: OSError, cwd: Path) -> str:
    """The same error says that the program and that its directory is not there."""
    why = f"git could not be started: {error}"
    if isinstance(error, FileNotFoundError) and not cwd.is_dir():
        return f"{why}: the directory {cwd} is not there"
    return f"{why}; install git 2.38 or newer where PATH finds it; `retinue doctor` shows what is missing"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _tail(stderr: str) -> str:
    text = stderr.strip().encode("utf-8", "replace").decode("utf-8")
    return text[-STDERR_TAIL:] or "(no message)"
