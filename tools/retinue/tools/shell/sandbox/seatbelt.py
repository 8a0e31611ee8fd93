"""sandbox-exec, on macOS: from a policy to a profile. Pure. Of two rules that fit, the later one counts.

The folders on the way to what may be read can be looked at, though not listed: programs ask where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from retinue.tools.shell.sandbox.plan import Access, accesses, nearest
from retinue.tools.shell.sandbox.policy import SandboxPolicy

PROGRAM = Path("/usr/bin/sandbox-exec")
GAPS = (
    "retinue's own tests have never run this profile, they only read it",
    "the names of all processes can be seen, and Mach services that the profile names be talked to",
    "with network: full, every server of this machine's loopback can be reached",
)
_PRIVATE = tuple(
    Path(text) for text in ("/private/tmp", "/private/var/tmp", "/private/var/run", "/private/var/folders")
)
_BASE = """(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read*)
(allow file-write-data file-ioctl (require-all (vnode-type CHARACTER-DEVICE)
  (require-any (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))))"""
_INTERNET = """(allow system-socket)
(allow network-bind network-inbound (local ip "*:*"))
(allow network-outbound (remote ip "*:*"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.trustd.agent"))"""


def profile(policy: SandboxPolicy) -> str:
    """Unix sockets are never allowed, hosts by name cannot be: such a policy is for another mechanism."""
    said: dict[Path, Access] = dict.fromkeys(_PRIVATE, "private")
    said |= {path: access for path, access in accesses(policy).items() if access != "private"}
    entries = sorted(said.items(), key=lambda item: (len(item[0].parts), item[0]))
    rules = [rule for path, access in entries for rule in _rules(path, access)]
    rules += [rule for path, _ in entries for rule in _held(path, said)]
    way = dict.fromkeys(
        folder for path, access in entries if access in ("writable", "readable") for folder in path.parents
    )
    rules += [f"(allow file-read-metadata {_text('literal', str(folder))})" for folder in way]
    return "\n".join((_BASE, *rules, *([_INTERNET] if policy.network == "full" else []), ""))


def _rules(path: Path, access: Access) -> Iterator[str]:
    match access:
        case "writable":
            yield f"(allow file-read* file-write* {_subpath(path)})"
        case "readable" | "protected":
            yield f"(allow file-read* {_subpath(path)})"
            yield f"(deny file-write* {_any_case(path)})"
        case "hidden" | "private":
            yield f"(deny file-read* file-write* {_any_case(path)})"


def _held(path: Path, said: dict[Path, Access]) -> Iterator[str]:
    """The folders between a writable one and an entry in it cannot be moved away."""
    above = nearest(path, said)
    if above is not None and said[above] == "writable":
        for folder in path.parents:
            if folder == above:
                return
            yield f"(deny file-write-unlink {_text('literal', str(folder))})"


def _subpath(path: Path) -> str:
    return _text("subpath", str(path))


def _any_case(path: Path) -> str:
    """Of a file and all below it; the file system may take two spellings for one name."""
    return f'(regex #"^{"".join(map(_letter, str(path)))}(/|$)")'


def _letter(letter: str) -> str:
    """As an expression that fits it. A quotation mark would end the text, so it fits everything: it is for refusals."""
    if letter == '"':
        return "."
    if letter.isalpha() and letter.isascii():
        return f"[{letter.lower()}{letter.upper()}]"
    return f"\\{letter}" if letter in r".[]{}()*+?^$|\\" else letter


def _text(kind: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'({kind} "{escaped}")'
