"""Starts a command beside a forwarder from a loopback port to the proxy's Unix socket, which lies outside.

A program of its own (`python -I -S -E`): `forwarder SOCKET PROGRAM ARGUMENT...`. The forwarder is no child of the
command, and ends with the process namespace that both are in.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

CHUNK = 65_536
BACKLOG = 64
SCHEMES = ("http", "https", "all")


def main() -> None:
    path, argv = sys.argv[1], sys.argv[2:]
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    port: int = listener.getsockname()[1]
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            serve(listener, path)
        os._exit(0)
    os.waitpid(child, 0)
    listener.close()
    os.environ.update(variables(f"http://127.0.0.1:{port}"))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a command must not
        signal.signal(number, signal.SIG_DFL)
    os.execv(argv[0], argv)


def variables(url: str) -> dict[str, str]:
    names = [f"{scheme}_proxy" for scheme in SCHEMES]
    found = {name: url for lower in names for name in (lower, lower.upper())}
    return found | dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1")


def serve(listener: socket.socket, path: str) -> None:
    """Never returns. The socket is named from within its folder: the whole path may be too long for an address."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir(os.path.dirname(path))
    while True:
        client, _ = listener.accept()
        threading.Thread(target=connect, args=(client, os.path.basename(path)), daemon=True).start()


def connect(client: socket.socket, name: str) -> None:
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(name)
    except OSError:
        client.close()
        return
    back = threading.Thread(target=pump, args=(server, client), daemon=True)
    back.start()
    pump(client, server)
    back.join()
    client.close()
    server.close()


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            abandon(end)


def abandon(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
