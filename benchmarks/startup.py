"""CPU time of a cold ``jobgen pbs``, against an interpreter that only imports click and jinja2."""

from __future__ import annotations

import compileall
import sys
from collections.abc import Iterator

import jobgen
from benchmarks.measure import Figure, cpu_seconds, medians

RUNS = 25


def figures() -> Iterator[Figure]:
    for folder in jobgen.__path__[:1]:
        compileall.compile_dir(folder, quiet=1)  # as pip does it for an installed package
    ours = [sys.executable, "-m", "jobgen", "pbs", "--nodes", "2", "--launcher", "mpirun"]
    imports = [sys.executable, "-c", "import click, jinja2"]
    cpu_seconds(ours)  # the first run after an installation compiles the templates
    pairs = [(cpu_seconds(ours), cpu_seconds(imports)) for _ in range(RUNS)]
    mine, theirs = medians(*zip(*pairs, strict=True))
    yield Figure("jobgen pbs, CPU time", mine * 1000, "ms", theirs * 1000, "import click, jinja2")
