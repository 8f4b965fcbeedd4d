"""Timing of whole commands. The benchmarks run both sides in turn, under the same conditions."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure: ``ours`` and ``other`` in ``unit``, of several runs."""

    what: str
    ours: float
    unit: str
    other: float | None = None
    against: str = ""

    def line(self) -> str:
        text = f"{self.what}: {_shown(self.ours)} {self.unit}"
        if self.other is not None:
            text += f"; {self.against}: {_shown(self.other)} {self.unit}; ratio {self.ours / self.other:.3f}"
        return text


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def cpu_seconds(command: Sequence[str], cwd: str | None = None) -> float:
    """Return the user and system time of one run of a command, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def wall_seconds(
    command: Sequence[str], cwd: str | None = None, env: Mapping[str, str] | None = None
) -> float:
    """Return the elapsed time of one run of a command, in seconds."""
    start = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd, env=env
    )
    return time.perf_counter() - start


def medians(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    return statistics.median(first), statistics.median(second)
