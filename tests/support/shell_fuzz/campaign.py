"""Generated commands, judged, run where the analysis approves them, and compared; and faults made small."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request, Shell, Verdict
from retinue.tools.shell.analysis.table import Table, builtin_table
from retinue.tools.shell.disk import Disk
from support.shell_fuzz.grammar import Grammar
from support.shell_fuzz.judge import Fault, faults
from support.shell_fuzz.scene import Scene, furnish
from support.shell_fuzz.words import comparable, difference

BATCH = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A command that did what it may not, as it was found and as small as it could be made; and what that one did.

    Made small it may be another fault of the same kind than the one that was found.
    """

    command: str
    shell: Shell
    faults: tuple[Fault, ...]
    smallest: str


@dataclass(slots=True)
class Campaign:
    """Counts of what was tried, and what was found."""

    scene: Scene
    grammar: Grammar
    table: Table = field(default_factory=builtin_table)
    generated: int = 0
    run: int = 0
    compared: int = 0
    programs: Counter[str] = field(default_factory=Counter[str])
    timed_out: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    seconds: float = 0.0
    most: int = 100
    """After so many findings they are mostly one."""
    made_small: int = 12
    """How many unlike findings are made small; that takes seconds for each."""
    marks: set[str] = field(default_factory=set[str])

    def judge(self, command: str, shell: Shell = "bash") -> Verdict:
        """With the links and names of the scene, as the tool does."""
        scene = self.scene
        disk = Disk(scene.project, shell)
        request = Request(
            command,
            str(scene.project),
            str(scene.home),
            shell,
            real=disk.real,
            expand=disk.expand,
            below=disk.below,
            ours=disk.ours,
        )
        return analyse(request, self.table)

    def approved(self, shell: Shell) -> Iterator[tuple[str, Verdict]]:
        """Without end: each text once that the analysis would let run unasked."""
        seen: set[str] = set()
        for command in self.grammar.commands():
            if command in seen or "\0" in command or not _encodes(command):
                continue
            seen.add(command)
            self.generated += 1
            verdict = self.judge(command, shell)
            if verdict.outcome == "read-only" and self._runnable(verdict):
                yield command, verdict

    def _runnable(self, verdict: Verdict) -> bool:
        """Without programs that this machine lacks, or that only say their version and take long for it."""
        return all(part.inner and part.inner[0].value in self.grammar.known for part in verdict.parts)

    def fuzz(self, budget_s: float, shell: Shell = "bash", on_finding: Callable[[Finding], None] | None = None) -> None:
        """Batches until the time is over. Stops early after many findings: they are then mostly one."""
        begun = time.monotonic()
        source = self.approved(shell)
        while time.monotonic() - begun < budget_s and len(self.findings) < self.most:
            batch = list(islice(source, BATCH))
            self.run += len(batch)
            for command, found in self.check(batch, shell):
                small, did = self._shown(command, found, shell)
                finding = Finding(command, shell, did, small)
                self.findings.append(finding)
                if on_finding is not None:
                    on_finding(finding)
        self.seconds += time.monotonic() - begun

    def report(self) -> str:
        """The findings, each as small as it could be made, with how it broke its promise."""
        lines = [f"{f.shell} {f.smallest!r} {f.faults[0].kind}: {f.faults[0].what}" for f in self.findings[:20]]
        return "\n".join((f"{len(self.findings)} of {self.run + self.compared}, the first:", *lines))

    def _shown(self, command: str, found: tuple[Fault, ...], shell: Shell) -> tuple[str, tuple[Fault, ...]]:
        """Small, unless much like it has been made small before."""
        mark = " ".join((*sorted({fault.kind for fault in found}), *sorted(set(re.findall(r"[a-z]{2,}", command)))[:3]))
        if mark in self.marks or len(self.marks) >= self.made_small:
            return command, found
        self.marks.add(mark)
        return self.smallest(command, found, shell)

    def compare_words(self, budget_s: float) -> None:
        """The words that the analysis reads, approved or not, against those that bash would hand on."""
        begun = time.monotonic()
        source = (text for text in self.grammar.commands() if "\0" not in text and _encodes(text))
        judged = ((text, self.judge(text)) for text in source)
        plain = ((text, verdict) for text, verdict in judged if comparable(verdict))
        while time.monotonic() - begun < budget_s and len(self.findings) < self.most:
            batch = list(islice(plain, BATCH))
            self.compared += len(batch)
            called = self.scene.words([text for text, _ in batch])
            for (text, verdict), calls in zip(batch, called, strict=True):
                if (why := difference(verdict, calls)) is not None:
                    self.findings.append(Finding(text, "bash", (Fault("words", why),), text))
        self.seconds += time.monotonic() - begun

    def check(self, batch: Sequence[tuple[str, Verdict]], shell: Shell) -> list[tuple[str, tuple[Fault, ...]]]:
        """The commands of a batch that did what they may not."""
        before = self.scene.state()
        results = self.scene.trace([command for command, _ in batch], shell)
        wrong: list[tuple[str, tuple[Fault, ...]]] = []
        for (command, verdict), traced in zip(batch, results, strict=True):
            self.timed_out += traced.status == 137
            self.programs.update({part.inner[0].value for part in verdict.parts if part.inner})
            if found := faults(verdict, traced, self.scene):
                wrong.append((command, tuple(found)))
        if (after := self.scene.state()) != before:
            differs = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
            furnish(self.scene)
            if not any(fault.kind in ("write", "change", "exec") for _, found in wrong for fault in found):
                wrong.append(
                    (
                        "\n".join(command for command, _ in batch),
                        (Fault("tree", f"changed by one of these: {differs}"),),
                    )
                )
        return wrong

    def smallest(self, command: str, found: tuple[Fault, ...], shell: Shell) -> tuple[str, tuple[Fault, ...]]:
        """The shortest text, made by leaving out pieces, that is approved and breaks the same promise; and how."""
        kinds = {fault.kind for fault in found}
        if kinds == {"tree"}:
            return command, found
        for _ in range(8):
            shorter = {
                command[:at] + command[at + size :]
                for size in (12, 6, 3, 2, 1)
                for at in range(len(command) - size + 1)
            }
            tries = [(text, verdict) for text in sorted(shorter, key=len) if (verdict := self._still(text, shell))][:40]
            wrong = self.check(tries, shell)
            broken = [(text, other) for text, other in wrong if kinds & {fault.kind for fault in other}]
            if not broken:
                break
            command, found = min(broken, key=lambda pair: len(pair[0]))
        return command, found

    def _still(self, text: str, shell: Shell) -> Verdict | None:
        verdict = self.judge(text, shell)
        return verdict if verdict.outcome == "read-only" else None


def _encodes(command: str) -> bool:
    try:
        command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
