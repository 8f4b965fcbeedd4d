"""Lines of ``jobgen check`` per second of CPU time.

The scripts of tests and docs stand beside tree-sitter alone, long scripts beside short ones."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Figure
from jobgen.check.checker import check
from jobgen.script import syntax

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = (ROOT / "tests/golden").glob("*.sh")
SCRIPT = re.compile(rb"^```sh\n(.*?)^```", re.M | re.S)
PAGES = (ROOT / "docs/rules").glob("*.md")

LINES = 100_000
LONG = {
    "mpirun": b"mpirun -np 4 ./a.out | tee x\n",
    "assignments": b'name="$HOME/$name"\n',
    "directives": b"#SBATCH --nodes=2\n",
}


def figures() -> Iterator[Figure]:
    sources = [path.read_bytes() for path in GOLDEN]
    sources += [text for page in PAGES for text in SCRIPT.findall(page.read_bytes())]
    lines = sum(source.count(b"\n") for source in sources)
    check(sources[0])  # the first call loads tree-sitter and the rules
    whole = lines / _seconds(lambda: [check(source) for source in sources])
    tree = lines / _seconds(lambda: [syntax.parse(source) for source in sources])
    yield Figure("jobgen check, lines a second", whole, "lines/s", tree, "the tree alone")
    for name, line in LONG.items():
        few, many = (b"#!/bin/bash\n" + line * count for count in (LINES // 100, LINES))
        long = LINES / _seconds(lambda source=many: check(source), 1)
        short = LINES / 100 / _seconds(lambda source=few: check(source), 1)
        yield Figure(f"{LINES:,} lines of {name}", long, "lines/s", short, f"{LINES // 100:,} lines")


def _seconds(work: Callable[[], object], runs: int = 5) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)
