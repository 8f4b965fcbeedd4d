"""Lines per second of ``jobgen check``, and of tree-sitter alone, on the scripts of tests and docs."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Figure
from jobgen.check import bash
from jobgen.check.checker import check

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = (ROOT / "tests/golden").glob("*.sh")
SCRIPT = re.compile(rb"^```sh\n(.*?)^```", re.M | re.S)
PAGES = (ROOT / "docs/rules").glob("*.md")


def figures() -> Iterator[Figure]:
    sources = [path.read_bytes() for path in GOLDEN]
    sources += [text for page in PAGES for text in SCRIPT.findall(page.read_bytes())]
    lines = sum(source.count(b"\n") for source in sources)
    check(sources[0])  # the first call loads tree-sitter and the rules
    whole = lines / _seconds(lambda: [check(source) for source in sources])
    tree = lines / _seconds(lambda: [bash.parse(source) for source in sources])
    yield Figure("jobgen check, lines a second", whole, "lines/s", tree, "the tree alone")


def _seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
