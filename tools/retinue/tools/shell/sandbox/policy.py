"""What a confined command may reach: plain values, the same for every mechanism. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Network = Literal["off", "full"] | tuple[str, ...]
"""`off`, `full`, or the hosts that a proxy lets through (`packages.example.net`, `*.example.org`)."""


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """All paths are absolute and real. Of two entries the deeper one counts; what no entry names may be read.

    writable    folders in which everything may be changed
    readable    may be read and not changed, also inside a hidden or writable folder
    protected   inside of a writable folder: may be read, and neither changed nor made when it is absent
    hidden      is as if it were empty: neither read, nor listed, nor written
    scratch     the command's own temp folder, writable; it takes the place of /tmp
    """

    writable: tuple[Path, ...]
    scratch: Path
    readable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: Network = "off"


@dataclass(frozen=True, slots=True)
class SandboxUse:
    """How the shell tool uses its sandbox.

    state             `off`: the user said so. `broken`: it cannot start, for the reason `why`; then every command asks
    auto_allow        a confined command that no rule speaks of needs no question
    allow_unconfined  `dangerouslyDisableSandbox` may be asked for; else it is refused
    excluded          command patterns, as in `Bash(…)` rules: a command of which every part fits runs unconfined
    """

    state: Literal["on", "off", "broken"] = "off"
    why: str = ""
    auto_allow: bool = False
    allow_unconfined: bool = False
    excluded: tuple[str, ...] = ()


NO_SANDBOX = SandboxUse()
