"""Many kills at random over many runs, each on a cluster of its own that may be killed whole: to docs/results/."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random
from statistics import median

import pytest

from support.chaos import EVERYTHING, SINGLE, Storm
from support.crash_scene import Scene

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(3600)]

KILLS = 40
IN_A_RUN = 6
SEED = int(os.environ.get("RETINUE_CHAOS_SEED", "1000"))
PAGE = """\
# Chaos, {today}

{kills} times a process (or all at once) was killed with SIGKILL, in {storms} runs of three agents, in {seconds:.0f} s
on {cores} cores that had other work as well. After every run the invariants of its ledger held, each task was merged
once, each message was read once, no unsafe call had run twice, and the user's checkout was as before.

Again: `RETINUE_CHAOS_SEED={seed} make nightly`, or only this: `pytest -m nightly tests/nightly/test_chaos.py`.

`everything` is the viewer, the keeper of the cluster, Ray and every actor at once, followed by `resume`; a killed
viewer is followed by one too; the others come back by themselves. Back: from the kill to the first record of the
killed agent's or team's next process (median, longest); the rest write no records.

| killed | times | back, s |
|---|---|---|
{rows}

| seed | killed (after so many records of the ledger) | records in all |
|---|---|---|
{runs}
"""
RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_runs_end_well_whatever_is_killed_whenever() -> None:
    begun = time.monotonic()
    storms: list[Storm] = []
    with tempfile.TemporaryDirectory(prefix="rt-", dir="/tmp", ignore_cleanup_errors=True) as short:
        while sum(len(storm.kills) for storm in storms) < KILLS:
            run = f"s{SEED + len(storms)}"
            scene = Scene.make(Path(short) / run, run, ("--ephemeral",), os.environ)
            storm = Storm(scene, Random(SEED + len(storms)), (*SINGLE, EVERYTHING))
            storms.append(storm)
            try:
                storm.rage(IN_A_RUN)
            finally:
                scene.clean_up()
    RESULTS.mkdir(parents=True, exist_ok=True)
    today = date.today().isoformat()
    (RESULTS / f"chaos-{today}.md").write_text(page(storms, today, time.monotonic() - begun))


def page(storms: Sequence[Storm], today: str, seconds: float) -> str:
    """Only what was measured, and how to measure it again."""
    kills = [(storm, kill) for storm in storms for kill in storm.kills]
    back: defaultdict[str, list[float]] = defaultdict(list)
    count: defaultdict[str, int] = defaultdict(int)
    for storm, kill in kills:
        count[kill.victim] += 1
        if (took := storm.back_s(kill)) is not None:
            back[kill.victim].append(took)
    rows = [f"| {victim} | {count[victim]} | {_spread(back[victim])} |" for victim in sorted(count)]
    runs = [
        f"| {storm.scene.run[1:]} | {', '.join(f'{k.victim} ({k.records})' for k in storm.kills)} "
        f"| {len(storm.scene.records())} |"
        for storm in storms
    ]
    return PAGE.format(
        today=today,
        kills=len(kills),
        storms=len(storms),
        seconds=seconds,
        cores=os.cpu_count(),
        seed=SEED,
        rows="\n".join(rows),
        runs="\n".join(runs),
    )


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else "-"
