"""What the host does in a step: its time, and the operators, launches and waits that a profiler counts.

Costs are differences between a long and a short epoch: they leave out what is done once an epoch.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median

import torch

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

# The batch, the steps of a short and of a long epoch, and the epochs that are measured.
LOAD = 512, 20, 60, 3  # a batch of another size would be compiled again
TINY = 2, 50, 150, 5
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


def compiled(mode: str = "default") -> list[str]:
    """Return the options of a compiled training that does what the loops by hand do."""
    return f"--precision autocast --compile {mode} --clip 0 --optimizer adamw --lr 0.0003".split()


def host(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    batch, short, long, rounds = TINY if tiny else LOAD
    samples, model = ours.images(batch * long), "lenet" if tiny else "resnet18"
    options = [*ours.IMAGES, "--engine", "ddp", "--model", model, "--batch-size", str(batch), *compiled()]
    options += ["--epochs", str(rounds + 2)]
    mine = ours.Ours(options, samples.task(), here)
    hand = by_hand.Images(model, samples, here.device.torch)
    pairs = []
    for steps in (short, long):
        loop = hand.loop(batch * steps, batch)
        pairs.append(measured(mine, ours.first(samples, batch * steps).task(), loop.epoch, rounds))
    steps = long - short
    (few, few_hand), (many, many_hand) = pairs
    mine_more, hand_more = many[0] - few[0], many_hand[0] - few_hand[0]
    what = f"processor time of a step of {batch} images"
    yield Row("host", what, mine_more / steps * 1000, "ms", hand_more / steps * 1000, by_hand.NAME)
    for kind in KINDS:
        counts = float(many[1][kind] - few[1][kind]), float(many_hand[1][kind] - few_hand[1][kind])
        yield Row("host", f"{kind} in {steps} steps", counts[0], "", counts[1], by_hand.NAME)


def measured(
    mine: ours.Ours, task: ours.data.Task, epoch: Callable[[], None], rounds: int
) -> tuple[Costs, Costs]:
    """Return the costs of an epoch of ours and of an epoch by hand, which take turns."""
    others, counters = list[float](), [profiler(), profiler()]

    def between() -> None:
        began = time.process_time()
        if len(others) == rounds + 1:  # the epoch that has just ended was profiled
            counters[0].stop()
            counters[1].start()
        epoch()
        others.append(time.process_time() - began)
        if len(others) == rounds + 2:
            counters[1].stop()
        if len(others) == rounds + 1:
            counters[0].start()

    seconds = mine.rounds(task, between, time.process_time)
    times = (median(each[1 : rounds + 1]) for each in (seconds, others))
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
