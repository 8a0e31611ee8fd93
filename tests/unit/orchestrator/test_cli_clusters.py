"""`cluster status` and `cluster stop`, with what the machine says passed in."""

from __future__ import annotations

import json
import time

import pytest

from retinue.orchestrator.cli.main import main
from retinue.orchestrator.cluster import own
from retinue.orchestrator.cluster.own import ClusterStatus
from retinue.tools.errors import StateError


def cluster(key: str, *, current: bool = True, ephemeral: bool = False, runs: tuple[str, ...] = ()) -> ClusterStatus:
    return ClusterStatus(key, "127.0.0.1:6379", time.time() - 3_700, ephemeral, current, 7, 512_000_000, runs)


def test_clusters_are_listed_with_their_live_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [cluster("abc", runs=("shop",)), cluster("def", current=False), cluster("ghi", ephemeral=True)]
    monkeypatch.setattr(own, "status", lambda _environ: found)
    assert main(["cluster", "status"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("cluster  started")
    assert [row.split("  ")[-1].strip() for row in rows] == ["this retinue", "another version", "one run"]
    assert "1 h ago" in rows[0]
    assert "512 MB" in rows[0]
    assert "shop" in rows[0]


def test_clusters_as_json_are_one_document(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "status", lambda _environ: [cluster("abc", runs=("shop",))])
    assert main(["cluster", "status", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (row["cluster"], row["live_runs"], row["memory_bytes"]) == ("abc", ["shop"], 512_000_000)


def test_without_a_cluster_nothing_is_listed_and_nothing_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "status", lambda _environ: [])
    monkeypatch.setattr(own, "stop", lambda *, force: [])
    for command in ("status", "stop"):
        assert main(["cluster", command]) == 0
        caught = capsys.readouterr()
        assert caught.out == ""
        assert "no cluster" in caught.err


def test_stopping_is_refused_for_live_runs_unless_forced(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*, force: bool) -> list[str]:
        if not force:
            raise StateError("live runs use the local cluster: shop")
        return ["abc"]

    monkeypatch.setattr(own, "stop", stop)
    assert main(["cluster", "stop"]) == 2
    assert "shop" in capsys.readouterr().err
    assert main(["cluster", "stop", "--force"]) == 0
    assert capsys.readouterr().out == "ended cluster abc\n"
