"""Unit tests are pure: no cluster, no process, no socket. A test that needs one belongs in tests/integration."""

from __future__ import annotations

import socket
import subprocess

import pytest


def _refuse(what: str):
    def refuse(*_args: object, **_kwargs: object):
        raise AssertionError(f"a unit test must not use {what}")

    return refuse


@pytest.fixture(autouse=True)
def _no_outside_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", _refuse("subprocess"))
    monkeypatch.setattr(socket.socket, "connect", _refuse("sockets"))
