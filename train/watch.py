"""Observation of a run: the progress bar, the time of each part, a profiler's trace, the table at the end.

The metrics themselves go through report.Run.metric; sinks.py writes them to other places, too.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import torch

from .device import Device
from .metrics import TEST_LOSS, Metric
from .report import Run

Item = TypeVar("Item")
SKIP = 2  # steps that are not profiled: the first ones allocate and choose kernels
ROWS = 20  # of the table at the end; the last epoch may be one more


class Bar:
    """A progress bar with steps, time left, rate and loss on rank 0's terminal; elsewhere it does nothing."""

    def __init__(self, run: Run, done: int, steps: int, title: str) -> None:
        self._bar: Any = None
        if run.is_main and sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self._bar = tqdm(initial=done, total=steps, desc=title, unit="step", leave=False)

    @property
    def visible(self) -> bool:
        return self._bar is not None

    def advance(self) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def show(self, text: str) -> None:
        """Show the last report behind the rate."""
        if self._bar is not None:
            self._bar.set_postfix_str(text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Stopwatch:
    """Measures the seconds of each part of the loop on this rank.

    A part within another one counts for itself only. synchronous: wait for the device, so that its work
    counts for the part that requested it; otherwise it counts for the part that happened to wait for it.
    in_profile: show the parts in a profiler, too.
    """

    def __init__(self, device: torch.device, synchronous: bool, in_profile: bool) -> None:
        self.seconds: dict[str, float] = {}
        self._synchronous, self._wait, self._in_profile = synchronous, None, in_profile
        self._within = 0.0  # seconds of the parts within the present one
        if synchronous and device.type != "cpu":
            self._wait = getattr(torch, device.type).synchronize

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        before, self._within = self._within, 0.0
        start = self._now()
        with torch.profiler.record_function(name) if self._in_profile else nullcontext():
            yield
            seconds = self._now() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds - self._within
        self._within = before + seconds

    def each(self, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items. The time to get each of them counts for the part `name`."""
        iterator = iter(items)
        while True:
            with self.part(name):
                item = next(iterator, None)
            if item is None:
                return
            yield item

    def times(self) -> dict[str, float]:
        return {name: round(seconds, 3) for name, seconds in self.seconds.items()}

    def lines(self) -> list[str]:
        """Return the times as lines if `synchronous` is set; otherwise [], because they mean little."""
        if not self._synchronous:
            return []
        total = sum(self.seconds.values()) or 1.0
        rows = [f"  {name:<10} {s:9.2f} s {s / total:7.1%}" for name, s in self.seconds.items()]
        return ["time of rank 0:", *rows]

    def _now(self) -> float:
        if self._wait is not None:
            self._wait()
        return time.perf_counter()


class Profile:
    """torch's profiler for `steps` steps, after SKIP steps.

    It writes profile/rank-<n>.json.gz for chrome://tracing or ui.perfetto.dev and, on rank 0, the table
    profile/operations.txt.
    """

    def __init__(self, steps: int | None, device: Device, run: Run) -> None:
        self._steps, self._device, self._run = steps, device, run
        self._activity = device.row.profiler or "CPU"
        self._profiler: Any = None
        self._done = 0

    def before_step(self) -> None:
        if self._steps and self._profiler is None and self._done == SKIP:
            kinds = [getattr(torch.profiler.ProfilerActivity, name) for name in {"CPU", self._activity}]
            self._profiler = torch.profiler.profile(activities=kinds)
            self._profiler.start()

    def after_step(self) -> None:
        self._done += 1
        if self._profiler is not None and self._steps and self._done == SKIP + self._steps:
            self.finish()

    def finish(self) -> None:
        """Write the recording, or a note if the run ended before the profiler began."""
        if not self._steps:
            return
        steps, self._steps = self._done - SKIP, None
        if self._profiler is None:
            self._run.line(f"note: --profile begins after {SKIP} steps, and this run has {self._done}")
            return
        self._profiler.stop()
        assert self._run.directory is not None
        folder = self._run.directory / "profile"
        folder.mkdir(parents=True, exist_ok=True)
        self._profiler.export_chrome_trace(str(folder / f"rank-{self._run.rank}.json.gz"))
        if self._run.is_main:
            self._write_table(folder / "operations.txt")
            self._run.line(f"profile of {steps} steps: {folder}")
            if not self._device.row.profiler:
                self._run.line(
                    f"note: --profile has recorded only the host, not the {self._device.type} devices"
                )

    def _write_table(self, file: Path) -> None:
        key = f"self_{self._activity.lower()}_time_total"
        table = self._profiler.key_averages().table(sort_by=key, row_limit=30)
        file.write_text(table + "\n", encoding="utf-8")


def table(epochs: list[dict[str, Any]], metrics: Sequence[Metric]) -> list[str]:
    """Return the metrics of the epochs as lines; of many epochs, every n-th and the last.

    The last line has the best value of the first metric, or the smallest test loss of a run without metrics.
    """
    if not epochs:
        return []
    every = -(-len(epochs) // ROWS)
    rows = [row for i, row in enumerate(epochs) if i % every == 0 or row is epochs[-1]]
    names = "".join(f"  {metric.name:>8}" for metric in metrics)
    lines = [f"epoch  train loss   test loss{names}  samples/s   seconds"]
    for row in rows:
        cells = "".join(f"  {_cell(row[m.name], m.form):>{max(8, len(m.name))}}" for m in metrics)
        lines.append(
            f"{row['epoch']:>5}  {row['train_loss']:>10.4f}  {row['test_loss']:>10.4f}{cells}  "
            f"{row['samples_per_second']:>9.0f}  {row['seconds']:>8.1f}"
        )
    first = metrics[0] if metrics else TEST_LOSS
    rows = [row for row in epochs if row[first.name] is not None]
    if len(rows) > 1:
        best = (max if first.higher else min)(rows, key=lambda row: row[first.name])
        lines.append(f"best {first.text(best[first.name])} in epoch {best['epoch']}")
    return lines


def _cell(value: float | None, form: str) -> str:
    """Return a value of the table; '-' for one that is not finite."""
    return "-" if value is None else format(value, form)
