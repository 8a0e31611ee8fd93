"""A language server that does what its arguments say: a stand-in for servers that crash, hang or talk nonsense.

It answers `hover` with what it knows (its process id, the text of open files, the environment), and obeys the word in
the query of `workspace/symbol`, which is one of `ORDERS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1])
HOW = set(sys.argv[2:])
documents: dict[str, str] = {}
watched: list[Any] = []
answered: dict[Any, Any] = {}
modified = 0


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\nContent-Type: x\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def log(what: str) -> None:
    with LOG.open("a") as file:
        file.write(f"{os.getpid()} {what}\n")


def crash(_: Any, __: str) -> None:
    sys.stderr.write("something broke\n")
    sys.stderr.flush()
    os._exit(7)


def crash_once(number: Any, _: str) -> None:
    mark = LOG.with_suffix(".crashed")
    if not mark.exists():
        mark.touch()
        os._exit(7)
    send({"id": number, "result": []})


def garbage(_: Any, __: str) -> None:
    sys.stdout.buffer.write(b"Hello, I am no protocol\r\n\r\n")
    sys.stdout.buffer.flush()


def answer_at_third(number: Any, _: str) -> None:
    global modified
    modified += 1
    again = {"error": {"code": -32801, "message": "content modified"}} if modified < 3 else {"result": []}
    send({"id": number, **again})


def child(number: Any, _: str) -> None:
    started = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, start_new_session=True)
    log(f"child {started.pid}")
    send({"id": number, "result": []})


def write(number: Any, path: str) -> None:
    try:
        Path(path).write_text("mine")
        send({"id": number, "result": []})
    except OSError as error:
        send({"id": number, "error": {"code": 1, "message": error.strerror}})


ORDERS: dict[str, Callable[[Any, str], object]] = {
    "crash": crash,
    "once": crash_once,
    "garbage": garbage,
    "nonsense": lambda number, _: send({"id": number, "result": [{"name": 7}]}),
    "refuse": lambda number, _: send({"id": number, "error": {"code": -32603, "message": "it is beyond me"}}),
    "modified": answer_at_third,
    "child": child,
    "write": write,
    "hang": lambda _, __: log("hang"),
}


def publish(uri: str, version: int) -> None:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    found = [{"range": span, "message": f"text {documents[uri]!r}", "severity": 2}]
    send(
        {"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": version, "diagnostics": found}}
    )


def start(number: Any, _: Any) -> None:
    log("start")
    if "fail" in HOW:
        sys.stderr.write("no licence for today\n")
        sys.stderr.flush()
        os._exit(3)
    if "sleepy" not in HOW:
        able = {"hoverProvider": True, "workspaceSymbolProvider": True, "definitionProvider": True}
        send({"id": number, "result": {"capabilities": {**able, "positionEncoding": "utf-16"}}})


def started(_: Any, __: Any) -> None:
    send({"id": "c1", "method": "workspace/configuration", "params": {"items": [{"section": "a.b"}, {}]}})
    send({"id": "c2", "method": "workspace/applyEdit", "params": {"edit": {}}})
    send({"id": "c3", "method": "no/such", "params": {}})


def opened(_: Any, params: Any) -> None:
    document = params["textDocument"]
    documents[document["uri"]] = document.get("text") or params["contentChanges"][0]["text"]
    publish(document["uri"], document["version"])


def hover(number: Any, params: Any) -> None:
    names = {uri.rpartition("/")[2]: text for uri, text in documents.items()}
    seen = [[change["uri"].rpartition("/")[2], change["type"]] for change in watched]
    known = {"pid": os.getpid(), "open": names, "watched": seen, "env": dict(os.environ), "answered": answered}
    send({"id": number, "result": {"contents": json.dumps({**known, "position": params["position"]})}})


def definition(number: Any, params: Any) -> None:
    start = {"line": 0, "character": 5}
    place = {"uri": params["textDocument"]["uri"], "range": {"start": start, "end": start}}
    send({"id": number, "result": [place, place, {**place, "uri": "git:/x"}]})


def order(number: Any, params: Any) -> None:
    word, _, rest = params["query"].partition(" ")
    ORDERS[word](number, rest)


def shutdown(number: Any, _: Any) -> None:
    log("shutdown")
    send({"id": number, "result": None})


HANDLERS: dict[str, Callable[[Any, Any], object]] = {
    "initialize": start,
    "initialized": started,
    "textDocument/didOpen": opened,
    "textDocument/didChange": opened,
    "textDocument/didClose": lambda _, params: documents.pop(params["textDocument"]["uri"]),
    "workspace/didChangeWatchedFiles": lambda _, params: watched.extend(params["changes"]),
    "textDocument/hover": hover,
    "textDocument/definition": definition,
    "workspace/symbol": order,
    "$/cancelRequest": lambda _, params: log(f"cancelled {params['id']}"),
    "shutdown": shutdown,
    "exit": lambda _, __: os._exit(0),
}

while (request := receive()) is not None:
    if "method" not in request:
        answered[request["id"]] = request.get("result", request.get("error"))
    elif handler := HANDLERS.get(request["method"]):
        handler(request.get("id"), request.get("params") or {})
