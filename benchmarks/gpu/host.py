"""What the host does in a step: its time, and the operators, launches and waits that a profiler counts.

Costs are differences between a long and a short epoch: they leave out what is done once an epoch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import torch

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.rows import Row

STEPS = 20, 60  # of a short and of a long epoch
ROUNDS = 3  # the epochs that are measured
KINDS = {
    "operators": ("aten::",),
    "launches of kernels": ("cudaLaunchKernel", "cuLaunchKernel", "hipLaunchKernel"),
    "copies": ("cudaMemcpyAsync", "hipMemcpyAsync"),
    "waits": (
        "aten::_local_scalar_dense",
        "cudaStreamSynchronize",
        "cudaEventSynchronize",
        "cudaDeviceSynchronize",
    ),
}
Costs = tuple[float, Counter[str]]  # seconds and counts


def host(mine: ours.Ours, loop: by_hand.Loop, samples: ours.data.Data) -> Iterator[Row]:
    """Compare a training with a loop by hand. Both are compiled for batches of this size."""
    short, long = STEPS
    pairs = []
    for count in (short * loop.batch, long * loop.batch):
        task = ours.first(samples, count).task()
        pairs.append(measured(mine, task, replace(loop, count=count).epoch))
    steps = long - short
    (few, few_hand), (many, many_hand) = pairs
    mine_more, hand_more = many[0] - few[0], many_hand[0] - few_hand[0]
    what = f"processor time of a step of {loop.batch} images"
    yield Row("host", what, mine_more / steps * 1000, "ms", hand_more / steps * 1000, by_hand.NAME)
    for kind in KINDS:
        counts = float(many[1][kind] - few[1][kind]), float(many_hand[1][kind] - few_hand[1][kind])
        yield Row("host", f"{kind} in {steps} steps", counts[0], "", counts[1], by_hand.NAME)


def measured(mine: ours.Ours, task: ours.data.Task, epoch: Callable[[], None]) -> tuple[Costs, Costs]:
    """Return the costs of an epoch of ours and of an epoch by hand, which take turns."""
    others, counters = list[float](), [profiler(), profiler()]

    def between() -> None:
        began = time.process_time()
        if len(others) == ROUNDS + 1:  # the epoch that has just ended was profiled
            counters[0].stop()
            counters[1].start()
        epoch()
        others.append(time.process_time() - began)
        if len(others) == ROUNDS + 2:
            counters[1].stop()
        if len(others) == ROUNDS + 1:
            counters[0].start()

    seconds = mine.rounds(task, between, time.process_time, ROUNDS + 2)
    times = (median(each[1 : ROUNDS + 1]) for each in (seconds, others))
    first, second = ((time, counted(counter)) for time, counter in zip(times, counters, strict=True))
    return first, second


def profiler() -> torch.profiler.profile:
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(
        activities=[kinds.CPU, *([kinds.CUDA] if torch.cuda.is_available() else [])]
    )


def counted(counter: torch.profiler.profile) -> Counter[str]:
    counts = Counter[str]()
    for event in counter.key_averages():
        for kind, names in KINDS.items():
            counts[kind] += event.count if event.key.startswith(names) else 0
    return counts
