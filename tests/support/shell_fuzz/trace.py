"""What a trace of a shell says that it did. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_LINE = re.compile(r"(?P<pid>\d+) +(?P<rest>.*)")
_CALL = re.compile(r"(?P<name>\w+)\((?P<args>.*)")
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<args>.*)")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_RESULT = re.compile(r"\) += (?P<value>-?\d+|\?)(?:<(?P<path>[^>]*)>)?(?: (?P<error>E[A-Z]+))?")
_AT = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>, \"")
_WRITES = re.compile(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)")
_OPENS = frozenset(("open", "openat", "openat2", "creat"))
_NETWORK = frozenset(("connect", "sendto", "bind"))


class Act(NamedTuple):
    """`kind` is exec, read, write, change or network; `path` is where it led in truth, where that is known."""

    kind: str
    path: str
    argv: tuple[str, ...] = ()
    call: str = ""


def acts(lines: Iterable[str]) -> Iterator[Act]:
    """Everything that matters, in order. What failed to read or to run is left out; a failed write is not."""
    for name, args in _calls(lines):
        result = _RESULT.search(args)
        failed = result is not None and result["error"] is not None
        strings = [_text(found) for found in _STRING.findall(args.partition(" = ")[0] if name not in _OPENS else args)]
        if name in ("execve", "execveat"):
            if not failed and strings:
                yield Act("exec", strings[0], tuple(_argv(args)), name)
        elif name in _OPENS:
            yield from _opened(name, args, strings, result, failed=failed)
        elif name in _NETWORK:
            if "sa_family=AF_INET" in args:
                yield Act("network", args[:120], (), name)
        elif name not in ("chdir", "fchdir", "memfd_create"):
            yield Act("change", ", ".join(strings) or args[:80], (), name)


def _opened(name: str, args: str, strings: list[str], result: re.Match[str] | None, *, failed: bool) -> Iterator[Act]:
    at = _AT.search(args)
    named = strings[0] if strings else ""
    path = posixpath.normpath(posixpath.join(_text(at[1]) if at else "/", named))
    if result is not None and result["path"]:
        path = _text(result["path"])
    if result is not None and result["error"] == "EISDIR":
        return  # no directory can be opened for writing; some try
    if name == "creat" or _WRITES.search(args.partition('", ')[2]):
        yield Act("write", path, (), name)
    elif not failed and "O_PATH" not in args:
        yield Act("read", path, (), name)


def _calls(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each call with its arguments and result; the halves of an interrupted one are put together."""
    begun: dict[str, str] = {}
    for line in lines:
        parts = _LINE.match(line)
        if parts is None:
            continue
        pid, rest = parts["pid"], parts["rest"]
        resumed = _RESUMED.match(rest)
        if resumed is not None:
            rest = begun.pop(pid, f"{resumed['name']}(") + resumed["args"]
        elif rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>")
            continue
        call = _CALL.match(rest)
        if call is not None:
            yield call["name"], call["args"]
    for rest in begun.values():
        call = _CALL.match(rest)
        if call is not None:
            yield call["name"], call["args"]


def _argv(args: str) -> list[str]:
    start = args.find("[")
    end = args.find("]", start)
    return [_text(found) for found in _STRING.findall(args[start:end])]


def _text(hexadecimal: str) -> str:
    if "\\x" not in hexadecimal:
        return hexadecimal
    return bytes.fromhex(hexadecimal.replace("\\x", "")).decode("utf-8", "surrogateescape")
