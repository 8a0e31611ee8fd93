"""What the analysis of shell commands costs, against the parser's own parse of the same texts.

    python benchmarks/shell.py [--cases FOLDER] [--json]

The corpus is made here, from parts that agents use; `--cases` adds the `command` of every line of the `*.jsonl` files
of a folder. For each text the best of several runs counts, so that other load on the machine does not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tree_sitter import Language, Parser
from tree_sitter_bash import language

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request

Thing = TypeVar("Thing")
TARGET_RATIO, TARGET_P99_MS = 10.0, 1.0
ROUNDS = 9

FIRST = (
    "ls -la src",
    "git status --short",
    "git log --oneline -20 -- src/app.py",
    "rg -n --type py 'def \\w+\\(' src tests",
    "find . -name '*.ts' -not -path '*/node_modules/*'",
    "cat package.json tsconfig.json",
    "sed -n '10,200p' src/server.py",
    "npm test -- --watch=false",
    "NODE_ENV=test timeout 60 npm run build",
    "python3 -m pytest -q tests/unit",
    'git commit -m "fix: it\'s done; see #12"',
    "rm -rf build dist",
    "curl -sS https://example.org/a.json",
    "docker compose up -d --build",
    "cd packages/api && make all",
    'for f in *.py; do wc -l "$f"; done',
    'if [ -f a ]; then echo "$(cat a)"; fi',
    "cat <<'EOF' > notes.md\n# title\n$(not run)\nEOF",
)
THEN = (
    "",
    " | head -50",
    " 2>/dev/null",
    " && echo done",
    " 2>&1 | tail -5 | sort -u",
    "; git diff --stat",
    " > out.txt",
)


@dataclass(frozen=True)
class Figures:
    texts: int
    parse_us: float
    analysis_us: float
    ratio: float
    p50_us: float
    p99_us: float
    worst_us: float


def corpus(cases: Path | None) -> list[str]:
    made = ["".join(pair) for pair in itertools.product(FIRST, THEN)]
    if cases is None:
        return made
    lines = [line for path in sorted(cases.glob("*.jsonl")) for line in path.read_text().splitlines() if line.strip()]
    return [str(json.loads(line)["command"]) for line in lines]


def best_of(work: Callable[[Thing], object], things: Sequence[Thing]) -> list[float]:
    best = [float("inf")] * len(things)
    for _ in range(ROUNDS):
        for at, thing in enumerate(things):
            start = time.perf_counter()
            work(thing)
            best[at] = min(best[at], time.perf_counter() - start)
    return best


def measure(texts: Sequence[str]) -> Figures:
    parser = Parser(Language(language()))
    parsed = best_of(parser.parse, [text.encode("utf-8", "surrogatepass") for text in texts])
    requests = [Request(text, "/home/me/tree", "/home/me") for text in texts]
    analysed = best_of(analyse, requests)
    ordered = sorted(analysed)
    return Figures(
        texts=len(texts),
        parse_us=round(sum(parsed) / len(texts) * 1e6, 2),
        analysis_us=round(sum(analysed) / len(texts) * 1e6, 2),
        ratio=round(sum(analysed) / sum(parsed), 2),
        p50_us=round(ordered[len(texts) // 2] * 1e6, 1),
        p99_us=round(ordered[int(len(texts) * 0.99)] * 1e6, 1),
        worst_us=round(ordered[-1] * 1e6, 1),
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=Path)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    figures = measure(corpus(asked.cases))
    good = figures.ratio <= TARGET_RATIO and figures.p99_us <= TARGET_P99_MS * 1000
    if asked.json:
        print(json.dumps({**asdict(figures), "within_targets": good}))
    else:
        print(f"{figures.texts} texts; the parser {figures.parse_us} µs, the analysis {figures.analysis_us} µs each")
        print(
            f"ratio {figures.ratio} (target {TARGET_RATIO:g}); p50 {figures.p50_us} µs, p99 {figures.p99_us} µs "
            f"(target {TARGET_P99_MS * 1000:g}), worst {figures.worst_us} µs"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
