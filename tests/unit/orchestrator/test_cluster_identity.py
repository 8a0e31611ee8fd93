"""Which commands share a cluster, what its processes know of the shell, when it may end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retinue.orchestrator.cluster.identity import (
    ClusterRecord,
    Facts,
    Orders,
    ProcessId,
    build_of,
    cluster_environment,
    daemon_environment,
    deciding_environment,
    default_base,
    driver_environment,
    family_of,
    folder_of,
    key_of,
    ray_command,
)
from retinue.orchestrator.cluster.idle import RETIRED_S, Patience, Watch
from retinue.tools.errors import EnvironmentProblem

FACTS = Facts(1000, "/v/bin/python", "3.11.7", "2.60.0", "build", (("HOME", "/home/ada"),))
ORDERS = Orders(
    key="0123abcd",
    family="89abcdef",
    tag="t" * 32,
    python="/v/bin/python",
    ephemeral=False,
    idle_s=600,
    ended_s=10,
    unused_s=60,
    object_store_bytes=1,
)
SHELL = {
    "HOME": "/home/ada",
    "PATH": "/usr/bin",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": "lib:/opt/lib:",
    "ANTHROPIC_API_KEY": "sk-1",
    "AWS_SECRET_ACCESS_KEY": "s",
    "HTTPS_PROXY": "http://me:secret@proxy",
    "RAY_ADDRESS": "10.0.0.1:6379",
    "RAY_AUTH_TOKEN": "another cluster's",
    "TMUX": "/tmp/tmux,1,0",
}


def test_the_key_is_eight_hexadecimal_digits_and_the_same_every_time() -> None:
    assert key_of(FACTS) == key_of(replace(FACTS))
    assert len(key_of(FACTS)) == 8
    assert int(key_of(FACTS), 16) >= 0


@pytest.mark.parametrize(
    "other",
    [
        replace(FACTS, uid=1001),
        replace(FACTS, python="/w/bin/python"),
        replace(FACTS, python_version="3.12.0"),
        replace(FACTS, ray="2.60.1"),
        replace(FACTS, build="other"),
        replace(FACTS, environment=()),
    ],
)
def test_whatever_a_worker_would_run_differently_makes_another_cluster(other: Facts) -> None:
    assert key_of(other) != key_of(FACTS)


def test_builds_of_one_installation_are_a_family() -> None:
    assert family_of(replace(FACTS, build="older")) == family_of(FACTS)
    assert family_of(replace(FACTS, python="/w/bin/python")) != family_of(FACTS)


def test_a_changed_size_or_time_of_any_file_is_another_build_and_their_order_is_not() -> None:
    files = [("a.py", 1, 10), ("b.py", 2, 20)]
    assert build_of(files) == build_of(reversed(files))
    assert len({build_of(files), build_of([("a.py", 1, 11), files[1]]), build_of([("a.py", 3, 10), files[1]])}) == 3


def test_of_the_shell_only_what_is_allowed_reaches_the_cluster() -> None:
    assert cluster_environment(SHELL, "/here") == {
        "HOME": "/home/ada",
        "PATH": "/usr/bin",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": "/here/lib:/opt/lib",
    }


def test_the_search_path_and_the_language_do_not_split_clusters() -> None:
    here = {"HOME": "/home/ada", "PATH": "/usr/bin", "LANG": "C", "TZ": "UTC"}
    assert deciding_environment(here) == (("HOME", "/home/ada"),)


def test_daemons_get_the_tag_and_the_place_of_the_token_but_never_the_token() -> None:
    env = daemon_environment(cluster_environment(SHELL, "/here"), Path("/b/k/token"), "tag")
    assert (env["RETINUE_CLUSTER"], env["RAY_AUTH_TOKEN_PATH"], env["RAY_AUTH_TOKEN"]) == ("tag", "/b/k/token", "")
    assert env["RAY_AUTH_MODE"] == "token"
    assert env["RAY_worker_niceness"] == "0"
    assert "RETINUE_CLUSTER" not in driver_environment(Path("/b/k/token"))


def test_ray_is_started_on_a_free_port_of_the_loopback_in_a_folder_of_its_own() -> None:
    command = ray_command(ORDERS, Path("/b/k/r"))
    assert command[:2] == ["/v/bin/python", "-P"]
    for flag in ("--block", "--port=0", "--node-ip-address=127.0.0.1", "--temp-dir=/b/k/r", "--num-cpus=0"):
        assert flag in command
    assert "stop" not in command


def test_the_usual_folder_is_short_enough_for_rays_sockets() -> None:
    assert folder_of(default_base(4_294_967_294), "0123abcd") == Path("/tmp/retinue-4294967294/0123abcd")


def test_a_folder_too_deep_for_a_socket_is_refused_with_the_room_there_is() -> None:
    with pytest.raises(EnvironmentProblem, match=r"at most 2\d bytes fit"):
        folder_of(Path("/a/rather/long/path/to/the/state/of/somebody"), "0123abcd")


def test_a_record_survives_writing_and_knows_its_port() -> None:
    record = ClusterRecord(
        key="0123abcd",
        tag="t",
        ephemeral=True,
        created=1.5,
        address="127.0.0.1:40001",
        token_path=Path("/b/k/token"),
        keeper=ProcessId(pid=1, started=2),
        processes=(ProcessId(pid=3, started=4),),
    )
    assert ClusterRecord.model_validate_json(record.model_dump_json()) == record
    assert record.port == 40001


PATIENCE = Patience(idle_s=600, ended_s=10, unused_s=60)


def test_a_cluster_without_runs_ends_when_it_was_idle_long_enough() -> None:
    watch = Watch(PATIENCE, 0)
    watch.look(599, {})
    assert not watch.may_end(599)
    assert watch.may_end(600)


def test_a_live_run_keeps_it_for_ever_and_idleness_counts_from_its_end() -> None:
    watch = Watch(PATIENCE, 0)
    watch.look(10_000, {"r": True})
    assert not watch.may_end(10_000)
    assert watch.look(10_010, {"r": False}) == {"r"}
    assert not watch.may_end(10_599)
    assert watch.may_end(10_600)


def test_a_team_that_lets_go_of_its_lock_for_a_restart_has_not_ended() -> None:
    watch = Watch(replace(PATIENCE, ephemeral=True), 0)
    watch.look(1, {"r": True})
    assert watch.look(9, {"r": False}) == frozenset()
    assert not watch.may_end(9)
    watch.look(10, {"r": True})
    assert watch.look(19, {"r": False}) == frozenset()
    assert watch.look(20, {"r": False}) == {"r"}


def test_a_registered_run_that_never_starts_is_given_up() -> None:
    watch = Watch(PATIENCE, 0)
    assert watch.look(5, {"r": False}) == frozenset()
    assert watch.look(64, {"r": False}) == frozenset()
    assert watch.look(65, {"r": False}) == {"r"}


def test_an_ephemeral_cluster_ends_with_its_runs() -> None:
    watch = Watch(replace(PATIENCE, ephemeral=True), 0)
    watch.look(1, {"r": True})
    watch.look(2, {"r": True, "s": False})
    assert not watch.may_end(2)
    watch.look(3, {})
    assert watch.may_end(3)


def test_an_ephemeral_cluster_without_any_run_ends_after_a_while() -> None:
    watch = Watch(replace(PATIENCE, ephemeral=True), 0)
    watch.look(59, {})
    assert not watch.may_end(59)
    assert watch.may_end(60)


def test_a_command_that_asks_for_it_makes_idleness_begin_again() -> None:
    watch = Watch(PATIENCE, 0)
    watch.asked(500)
    assert not watch.may_end(1_099)
    assert watch.may_end(1_100)


def test_a_cluster_of_an_older_build_goes_early_but_never_under_a_run() -> None:
    watch = Watch(PATIENCE, 0)
    watch.look(100, {"r": True})
    assert not watch.may_end(100, retired=True)
    watch.look(101, {})
    assert watch.may_end(100 + RETIRED_S, retired=True)
    assert not watch.may_end(100 + RETIRED_S)
