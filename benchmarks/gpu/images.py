"""The program images: losses and resume, the costs of a loop, and ResNet-18 beside a loop by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import torch

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.correctness import correctness
from benchmarks.gpu.host import compiled, host
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

# The batch, the steps of a round, and the rounds that are measured. Rounds are short and many: the speed of a
# shared host varies.
LOAD = 512, 120, 6
TINY = 4, 2, 1
MODES = {"default": "bf16, compiled", "reduce-overhead": "bf16, compiled, CUDA graphs"}
PART = "ResNet-18"


def costs(here: Here, tiny: bool, size: str) -> Iterator[Row]:
    """Measure loops by hand that differ in one thing."""
    batch, steps, rounds = TINY if tiny else LOAD
    steps //= 2
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
    """Compare trainings with loops by hand: compiled, and with CUDA graphs, where the host sets no pace."""
    for mode, what in MODES.items():
        yield from beside_by_hand(here, tiny, mode, what)
        ours.forget(here)


def beside_by_hand(here: Here, tiny: bool, mode: str, what: str) -> Iterator[Row]:
    batch, steps, rounds = TINY if tiny else LOAD
    samples, model = ours.images(batch * steps), "cnn" if tiny else "resnet18"
    options = [*ours.IMAGES, "--engine", "ddp", "--model", model, "--batch-size", str(batch)]
    mine = ours.Ours([*options, *compiled(mode), "--epochs", str(rounds + 1)], samples.task(), here)
    loop = by_hand.Images(model, samples, here.device.torch).loop(batch * steps, batch, mode)
    others: list[float] = []
    seconds = mine.rounds(between=lambda: others.append(timed(loop.epoch)))
    rate, other = (batch * steps / median(each[1:]) for each in (seconds, others))
    yield Row(PART, what, rate, "images/s", other, by_hand.NAME)
    rate = median([row["samples_per_second"] for row in mine.events if row["event"] == "epoch"][1:])
    yield Row(PART, f"{what}, without the evaluation", rate, "images/s", other, by_hand.NAME)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


PARTS = (correctness, resnet18, host, costs)
