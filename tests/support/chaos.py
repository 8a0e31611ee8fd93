"""Kills parts of a run at random, by seed: who dies, and after how many more records of the ledger."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

from retinue.orchestrator.cluster.own import ClusterHandle
from retinue.orchestrator.ledger.frames import OPENED
from support.crash_scene import NAMES, Scene, Spy, eventually, kill_cluster, spy_on
from support.invariants import assert_invariants

SINGLE = ("viewer", "team", "ledger", "gateway", "scheduler", *NAMES)
EVERYTHING = "everything"
FEWEST, MOST = 4, 45
"""Records between two kills; a run that nobody disturbs writes about 250."""


@dataclass(frozen=True, slots=True)
class Kill:
    """`writer` is who has to come back; empty for a process that writes no records."""

    victim: str
    at: float
    records: int
    writer: str = ""


@dataclass(slots=True)
class Storm:
    """One run under fire. `spy` knows the cluster's processes; without one, it is looked up when it is needed."""

    scene: Scene
    random: Random
    victims: tuple[str, ...]
    spy: Spy | None = None
    kills: list[Kill] = field(default_factory=list[Kill])
    _open: ExitStack = field(default_factory=ExitStack)

    def rage(self, most: int) -> None:
        """Launch the run, kill up to `most` times while it is at work, and see it end well."""
        with self._open:
            self.scene.open_gate()
            self.scene.up()
            for _ in range(most):
                due = len(self.scene.records()) + self.random.randint(FEWEST, MOST)
                victim = self.random.choice(self.victims)
                eventually("the run goes on", lambda due=due: self._is_over() or len(self.scene.records()) >= due)
                if self._is_over():
                    break
                self._kill(victim)
            eventually("the run is over", self.scene.is_over)
        assert_invariants(self.scene.dir.root)
        self.scene.must_be_done()

    def back_s(self, kill: Kill) -> float | None:
        """Seconds until the next process of who was killed wrote its first record, if nothing else ended it before."""
        later = [f.at for f in self.scene.frames if f.kind == OPENED and f.at >= kill.at and f.writer == kill.writer]
        others = [k.at for k in self.kills if k.victim == EVERYTHING and k.at > kill.at]
        back = min(later, default=None)
        return None if back is None or min(others, default=back) < back else back - kill.at

    def _is_over(self) -> bool:
        return self.scene.phase() in ("done", "failed")

    def _kill(self, victim: str) -> None:
        writer = {"team": "team", EVERYTHING: "team"} | {name: f"{name}~1" for name in NAMES}
        pid = -1 if victim in ("viewer", EVERYTHING) else self._pid(victim)
        if not pid:
            return  # it was over before
        self.kills.append(Kill(victim, time.time(), len(self.scene.records()), writer.get(victim, "")))
        if pid > 0:
            os.kill(pid, signal.SIGKILL)
            return
        self.scene.viewers[-1].kill()
        if victim == EVERYTHING:
            cluster = self._cluster()
            self._open.close()
            self.spy = None
            kill_cluster(cluster)
        self.scene.resume()

    def _pid(self, victim: str) -> int:
        if self.spy is None:
            self.spy = self._open.enter_context(spy_on(self._cluster()))
        look, namespace = self.spy.look, "retinue" if victim == "scheduler" else self.scene.run
        eventually(f"there is a {victim}", lambda: self._is_over() or look(namespace, victim))
        return look(namespace, victim)

    def _cluster(self) -> ClusterHandle:
        """Of the run as it is now; a resume that was begun is waited for."""
        eventually("the run is live", self.scene.dir.is_live)
        cluster = self.scene.cluster()
        assert cluster is not None
        return cluster
