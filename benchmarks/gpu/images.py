"""The program images: losses and resume, the costs of a loop, and ResNet-18 beside a loop by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import torch

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.correctness import correctness
from benchmarks.gpu.host import COMPILED, host
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

# The batch, the steps of a short and of a long round, and the rounds that are measured. Rounds are short and
# many: the speed of a shared host varies.
LOAD = 512, 60, 240, 4
TINY = 4, 2, 4, 1
PART = "ResNet-18"


def costs(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    """Measure loops by hand that differ in one thing."""
    batch, short, _, rounds = TINY if tiny else LOAD
    steps = short // 2
    samples = ours.images(batch * steps)
    yield Row("costs", "copy of the images to the device", timed(lambda: copy(samples, here)), "s")
    hand = by_hand.Images("cnn" if tiny else "resnet18", samples, here.device.torch)
    variants = dict(hand.variants(batch * steps, batch))
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):  # the first one compiles
        for name, loop in variants.items():
            taken = timed(loop.epoch) / steps
            if turn:
                seconds[name].append(taken)
    base, *_ = (median(each) * 1000 for each in seconds.values())
    for name, each in seconds.items():
        yield Row("costs", name, median(each) * 1000, "ms a step", base, "the loop as it is")
    yield from evaluations(hand, samples, batch)


def copy(samples: ours.data.Data, here: Here) -> None:
    images = torch.tensor(samples.train.images, device=here.device.torch)
    images[-1, -1, -1, -1].item()


@torch.no_grad()
def evaluations(hand: by_hand.Images, samples: ours.data.Data, batch: int) -> Iterator[Row]:
    """Measure the evaluation of one batch, compiled and not."""
    device = next(hand.model.parameters()).device
    hand.model.eval()
    inputs = torch.tensor(samples.train.images[:batch], device=device).float()
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    seconds = []
    for model in (torch.compile(hand.model, dynamic=False), hand.model):

        def work(model: Callable[[torch.Tensor], torch.Tensor] = model) -> None:
            with torch.autocast(device.type, torch.bfloat16):
                for _ in range(20):
                    outputs = model(inputs)
            outputs.sum().item()

        work()
        seconds.append(timed(work) / 20 * 1000)
    yield Row("costs", "an evaluation, not compiled", seconds[1], "ms a batch", seconds[0], "compiled")
    hand.model.train()


def resnet18(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    batch, short, long, rounds = TINY if tiny else LOAD
    samples, model = ours.images(batch * long), "cnn" if tiny else "resnet18"
    options = [*ours.IMAGES, "--engine", "ddp", "--model", model, "--batch-size", str(batch), *COMPILED]
    options += ["--epochs", str(rounds + 1)]
    mine = ours.Ours(options, samples.task(), here)
    hand = by_hand.Images(model, samples, here.device.torch)
    taken = []
    for steps in (short, long):
        count, others = batch * steps, list[float]()
        loop, few = hand.loop(count, batch), ours.first(samples, count).task()
        seconds = mine.rounds(few, lambda: others.append(timed(loop.epoch)))  # noqa: B023
        taken.append((median(seconds[1:]), median(others[1:])))
        rates = [count / each for each in taken[-1]]
        yield Row(
            PART, f"{steps} steps a round, bf16, compiled", rates[0], "images/s", rates[1], by_hand.NAME
        )
        epochs = [row for row in mine.events if row["event"] == "epoch"]
        rate = median(row["samples_per_second"] for row in epochs[1:])
        yield Row(PART, f"{steps} steps, without the evaluation", rate, "images/s", rates[1], by_hand.NAME)
    slopes = [(second - first) / (long - short) for first, second in zip(*taken, strict=True)]
    rests = [(first - slope * short) * 1000 for first, slope in zip(taken[0], slopes, strict=True)]
    yield Row(PART, "a step", slopes[0] * 1000, "ms", slopes[1] * 1000, by_hand.NAME)
    yield Row(PART, "a round without its steps", rests[0], "ms", rests[1], by_hand.NAME)
    evaluation = mine.last("time")["evaluate"] / (rounds + 1)
    yield Row(PART, "of which the evaluation of one sample", evaluation * 1000, "ms")


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PARTS = (correctness, resnet18, host, costs)
