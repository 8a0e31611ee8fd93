"""The shell fuzz for an hour: to docs/results/, written anew after every stretch of it."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

from retinue.tools.shell.analysis.model import Shell
from retinue.tools.shell.analysis.table import builtin_table
from support.shell_fuzz.campaign import Campaign, Finding
from support.shell_fuzz.endurance import LIMIT_MS, analyse_all_ways, slow
from support.shell_fuzz.grammar import Grammar
from support.shell_fuzz.scene import fresh_scene
from support.shell_fuzz.texts import hard_texts

pytestmark = [pytest.mark.nightly, pytest.mark.live, pytest.mark.timeout(3 * 3600)]

BUDGET_S = float(os.environ.get("RETINUE_SHELL_FUZZ_S", "3600"))
SEED = int(os.environ.get("RETINUE_SHELL_FUZZ_SEED", "1000"))
CASES = os.environ.get("RETINUE_SHELL_FUZZ_CASES")
"""A file with further seeds: a JSON object a line, each with a `command`."""
STRETCH_S = 240.0
SHARES: tuple[tuple[Shell | str, float], ...] = (("bash", 0.5), ("zsh", 0.2), ("words", 0.1), ("texts", 0.2))
RESULTS = Path(__file__).parents[2] / "docs" / "results"
GROSS = 2.0
"""A busy machine takes longer for the same work, also in processor time."""
PAGE = """\
# Shell fuzz, {today}

{seconds:.0f} s on {cores} cores that had other work as well, seeds {first} to {last}. Measured by
`tests/nightly/test_shell_fuzz_hour.py`, part of `make nightly`. Again, with the same seeds:
`RETINUE_SHELL_FUZZ_SEED={first} RETINUE_SHELL_FUZZ_S={budget:.0f} make nightly`.

- {generated} commands were generated, from the grammar, from seeds and as mutations of both; {run} of them
  ({share:.0f} %) the analysis called read-only. These ran in a box of namespaces under strace, {rate:.0f} a second:
  {programs} programs, {timed_out} stopped after 4 s.
- {wrong} of them did what they may not: ran what was not reported, opened anything but /dev/null for writing,
  changed the tree, connected anywhere, or read what lies outside the working directory.
- The words of {compared} commands were compared with those that bash hands on: {differ} differ.
- {texts} hard texts were analysed without an exception, {slow} of them in more than {limit:.0f} ms of processor
  time (the longest {longest:.0f} ms).

{findings}
"""


@dataclass(slots=True)
class Tally:
    """What all stretches came to."""

    generated: int = 0
    run: int = 0
    compared: int = 0
    timed_out: int = 0
    texts: int = 0
    traced_s: float = 0.0
    programs: set[str] = field(default_factory=set[str])
    slow: dict[str, float] = field(default_factory=dict[str, float])
    findings: list[tuple[int, Finding]] = field(default_factory=list[tuple[int, Finding]])

    def add(self, campaign: Campaign, seed: int) -> None:
        self.generated += campaign.generated
        self.run += campaign.run
        self.compared += campaign.compared
        self.timed_out += campaign.timed_out
        self.traced_s += campaign.seconds if campaign.run else 0.0
        self.programs.update(campaign.programs)
        self.findings.extend((seed, finding) for finding in campaign.findings)

    def of_words(self, words: bool) -> int:
        return sum((finding.faults[0].kind == "words") is words for _, finding in self.findings)


def test_an_hour_of_commands_and_texts_finds_nothing() -> None:
    assert shutil.which("strace"), "strace is needed to watch a shell"
    assert shutil.which("bwrap"), "bubblewrap is needed to keep a command in a box"
    begun, seed, tally = time.monotonic(), SEED, Tally()
    while (left := BUDGET_S - (time.monotonic() - begun)) > 0:
        for what, share in SHARES:
            if what != "zsh" or shutil.which("zsh"):
                stretch(what, seed, share * min(STRETCH_S, left), tally)
        RESULTS.mkdir(parents=True, exist_ok=True)
        today = date.today().isoformat()
        page = RESULTS / f"shell-fuzz-{today}.md"
        page.write_text(written(tally, today, seed, time.monotonic() - begun))
        seed += 1
    assert not tally.findings, [finding.smallest for _, finding in tally.findings]
    assert all(ms < GROSS * LIMIT_MS for ms in tally.slow.values()), {t[:99]: ms for t, ms in tally.slow.items()}


def stretch(what: str, seed: int, seconds: float, tally: Tally) -> None:
    grammar = Grammar(seed, builtin_table(), further_seeds())
    if what == "texts":
        until = time.monotonic() + seconds
        for text in hard_texts(seed, grammar):
            if time.monotonic() > until:
                return
            tally.texts += 1
            analyse_all_ways(text)
            if (ms := slow(text)) is not None:
                tally.slow[text] = ms
    with fresh_scene() as scene:
        campaign = Campaign(scene, grammar)
        if what == "words":
            campaign.compare_words(seconds)
        else:
            campaign.fuzz(seconds, "zsh" if what == "zsh" else "bash")
        tally.add(campaign, seed)


def further_seeds() -> list[str]:
    if CASES is None:
        return []
    return [str(json.loads(line)["command"]) for line in Path(CASES).read_text().splitlines() if line.strip()]


def written(tally: Tally, today: str, last: int, seconds: float) -> str:
    """Only what was measured, and how to measure it again."""
    found = [
        f"- seed {seed}, {finding.shell}: `{finding.smallest!r}` {finding.faults[0].kind}: {finding.faults[0].what}"
        for seed, finding in tally.findings[:100]
    ]
    found += [f"- {ms:.0f} ms, {len(text)} characters: `{text[:60]!r}`" for text, ms in tally.slow.items()][:40]
    return PAGE.format(
        today=today,
        seconds=seconds,
        cores=os.cpu_count(),
        first=SEED,
        last=last,
        budget=BUDGET_S,
        generated=f"{tally.generated:,}",
        run=f"{tally.run:,}",
        share=100 * tally.run / max(tally.generated, 1),
        rate=tally.run / max(tally.traced_s, 1),
        programs=len(tally.programs),
        timed_out=tally.timed_out,
        wrong=tally.of_words(False),
        compared=f"{tally.compared:,}",
        differ=tally.of_words(True),
        texts=f"{tally.texts:,}",
        slow=len(tally.slow),
        limit=LIMIT_MS,
        longest=max(tally.slow.values(), default=LIMIT_MS),
        findings="\n".join(found) or "Nothing was found.",
    )
