"""The program images: losses and resume, ResNet-18 beside a loop by hand, and the costs of a loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import torch

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.correctness import correctness
from benchmarks.gpu.host import host
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

# The batch, the steps of a round, and the rounds that are measured. Rounds are short and many: the speed of a
# shared host varies.
LOAD = 512, 120, 4
TINY = 2, 60, 1
MODES = {"reduce-overhead": "bf16, compiled, CUDA graphs", "default": "bf16, compiled"}
PART = "ResNet-18"


def resnet18(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    """Compare trainings with loops by hand: with CUDA graphs, where the host sets no pace, and compiled.

    To compile takes longer than to measure: the compiled ones serve the host and the costs, too.
    """
    batch, steps, rounds = TINY if tiny else LOAD
    samples, model = ours.images(batch * steps), "lenet" if tiny else "resnet18"
    for mode, what in MODES.items():
        ours.forget(here)
        options = f"--engine ddp --model {model} --batch-size {batch} --epochs {rounds + 1}".split()
        mine = ours.Ours([*ours.IMAGES, *options, *ours.compiled(mode)], samples.task(), here)
        hand = by_hand.Images(model, samples, here.device.torch)
        loop = hand.loop(batch * steps, batch, mode)
        yield from beside_by_hand(mine, loop, what)
    yield from host(mine, loop, samples)
    yield from costs(hand, loop)
    yield from evaluations(hand, loop)


def beside_by_hand(mine: ours.Ours, loop: by_hand.Loop, what: str) -> Iterator[Row]:
    others: list[float] = []
    seconds = mine.rounds(between=lambda: others.append(timed(loop.epoch)))
    rate, other = (loop.count / median(each[1:]) for each in (seconds, others))
    yield Row(PART, what, rate, "images/s", other, by_hand.NAME)
    rate = median([row["samples_per_second"] for row in mine.events if row["event"] == "epoch"][1:])
    yield Row(PART, f"{what}, without the evaluation", rate, "images/s", other, by_hand.NAME)


def costs(hand: by_hand.Images, loop: by_hand.Loop) -> Iterator[Row]:
    """Measure loops by hand that differ in one thing."""
    yield Row("costs", "copy of the images to the device", timed(hand.copy), "s")
    steps = loop.count // loop.batch // 3
    variants = hand.variants(replace(loop, count=steps * loop.batch))
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(5):  # the first one compiles
        for name, variant in variants.items():
            taken = timed(variant.epoch) / steps
            if turn:
                seconds[name].append(taken)
    base, *_ = (median(each) * 1000 for each in seconds.values())
    for name, each in seconds.items():
        yield Row("costs", name, median(each) * 1000, "ms a step", base, "the loop as it is")


@torch.no_grad()
def evaluations(hand: by_hand.Images, loop: by_hand.Loop) -> Iterator[Row]:
    """Measure the evaluation of one batch, compiled and not."""
    hand.model.eval()
    inputs, _ = loop.prepared(torch.arange(loop.batch, device=loop.device))
    seconds = []
    for model in (torch.compile(hand.model, dynamic=False), hand.model):

        def work(model: Callable[[torch.Tensor], torch.Tensor] = model) -> None:
            with torch.autocast(loop.device.type, torch.bfloat16):
                for _ in range(20):
                    outputs = model(inputs)
            outputs.sum().item()

        work()
        seconds.append(timed(work) / 20 * 1000)
    yield Row("costs", "an evaluation, not compiled", seconds[1], "ms a batch", seconds[0], "compiled")
    hand.model.train()


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PARTS = (correctness, resnet18)
