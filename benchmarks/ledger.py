"""Durable appends to a ledger, by many waiting writers, against the disk's own rate of fdatasync in the same run.

    python benchmarks/ledger.py [--writers 64] [--seconds 3] [--folder DIR] [--json]

The floor appends one frame, brings it to disk, and begins again: what a ledger without sharing could do at best. The
two are measured in turns, because a disk's rate changes from second to second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from retinue.orchestrator.ledger.frames import Record, encode_frame, new_marker
from retinue.orchestrator.ledger.writer import Body, Disk, LedgerFile, LedgerWriter

TARGET = 0.5
ROUNDS = 5
BODY: Body = {
    "turn": 12,
    "step": 34,
    "result": {"call_id": "toolu_0123456789", "content": "x" * 300, "is_error": False},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    writers: int
    floor_per_s: float
    appends_per_s: float
    ratio: float
    fdatasyncs_per_s: float
    fdatasync_ratio: float
    appends_per_fdatasync: float
    target: float
    ok: bool


def floor_rate(folder: Path, seconds: float) -> float:
    """Appends of one frame, each with its own fdatasync, by one thread that does nothing else."""
    frame = encode_frame(new_marker(os.urandom(8)), Record("floor", 1, 0, time.time(), "tool_finished", BODY))
    fd = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            os.write(fd, frame)
            os.fdatasync(fd)
            done += 1
        return done / (time.perf_counter() - start)
    finally:
        os.close(fd)


async def ledger_rate(folder: Path, writers: int, seconds: float) -> tuple[float, float]:
    """(durable appends, fdatasyncs) a second."""
    syncs = 0

    def counted(fd: int) -> None:
        nonlocal syncs
        syncs += 1
        os.fdatasync(fd)

    file = LedgerFile.open(folder / "ledger.rlog", disk=Disk(sync=counted))
    logs = [LedgerWriter(file, f"agent-{n}", 1) for n in range(writers)]
    await file.sync()
    syncs, start = 0, time.perf_counter()

    async def work(log: LedgerWriter) -> int:
        done = 0
        while time.perf_counter() - start < seconds:
            await log.append("tool_finished", BODY, durable=True)
            done += 1
        return done

    done = sum(await asyncio.gather(*map(work, logs)))
    took = time.perf_counter() - start
    file.close()
    return done / took, syncs / took


def measure(folder: Path, writers: int, seconds: float) -> Outcome:
    floors: list[float] = []
    appends: list[float] = []
    syncs: list[float] = []
    for _ in range(ROUNDS):
        floors.append(floor_rate(folder, seconds / ROUNDS))
        appended, synced = asyncio.run(ledger_rate(folder, writers, seconds / ROUNDS))
        appends.append(appended)
        syncs.append(synced)
    floor, value, synced = statistics.median(floors), statistics.median(appends), statistics.median(syncs)
    ratio = value / floor
    return Outcome(writers, floor, value, ratio, synced, synced / floor, value / synced, TARGET, ratio >= TARGET)


def main() -> int:
    parser = argparse.ArgumentParser(description="Durable ledger appends against the disk's own fdatasync rate.")
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each of the two")
    parser.add_argument("--folder", type=Path, default=None, help="on the disk to measure; default: here")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder or Path.cwd(), prefix=".ledger-benchmark-") as folder:
        outcome = measure(Path(folder), asked.writers, asked.seconds)
    if asked.json:
        print(json.dumps(asdict(outcome)))
    else:
        print(f"floor   {outcome.floor_per_s:10.0f} /s  one frame, one fdatasync, one thread")
        print(f"value   {outcome.appends_per_s:10.0f} /s  durable appends, {outcome.writers} waiting writers")
        print(f"ratio   {outcome.ratio:10.2f}     target >= {outcome.target}")
        print(
            f"groups  {outcome.fdatasyncs_per_s:10.0f} /s  fdatasyncs ({outcome.fdatasync_ratio:.2f} of the floor), "
            f"{outcome.appends_per_fdatasync:.1f} appends each"
        )
    return 0 if outcome.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
