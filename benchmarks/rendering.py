"""Rendering of 1,000 different jobs in one process, compared with resolving and rendering them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from benchmarks.measure import Figure
from jobgen.config import read_spec
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render

JOBS = 1000


def figures() -> Iterator[Figure]:
    launchers = ("mpirun", "deepspeed", "torchrun")
    given = [
        (
            "pbs" if i % 2 else "slurm",
            {"nodes": str(i % 64 + 1), "launcher": launchers[i % 3], "env": [f"RUN={i}"]},
        )
        for i in range(JOBS)
    ]
    plans = [resolve(read_spec(scheduler, options)) for scheduler, options in given]
    assert len({render(plan) for plan in plans}) == JOBS
    rendering, whole = [], []
    for _ in range(7):
        start = time.perf_counter()
        for plan in plans:
            render(plan)
        middle = time.perf_counter()
        for scheduler, options in given:
            render(resolve(read_spec(scheduler, options)))
        rendering.append(middle - start)
        whole.append(time.perf_counter() - middle)
    scale = 1e6 / JOBS
    yield Figure(
        "rendering one of 1,000 different jobs",
        statistics.median(rendering) * scale,
        "us",
        statistics.median(whole) * scale,
        "read, resolve and render",
    )
