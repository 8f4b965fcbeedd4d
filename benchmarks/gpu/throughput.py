"""Parts resnet18 and gpt-*: images and tokens per second, and the model FLOP utilisation (MFU)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

from jobgen.train.config.language import SIZES
from jobgen.train.device import Device

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.rows import Row

GIB = 2**30
BY_HAND = "a compiled torch loop by hand"
COMPILED = ("--precision", "autocast", "--compile", "--clip", "0", "--optimizer", "adamw", "--lr", "0.0003")


class Load(NamedTuple):
    """batch: samples of a step; steps: of a round; rounds: that are measured; least: memory that it needs

    together: both sides are in memory at once, and take turns
    """

    batch: int
    steps: int
    rounds: int
    least: int
    together: bool


LOADS = {
    "resnet18": Load(512, 60, 3, 8 * GIB, True),
    "gpt-124m": Load(16, 30, 3, 38 * GIB, True),
    "gpt-1.3b": Load(4, 12, 2, 60 * GIB, False),
}
TINY = Load(4, 2, 1, 0, True)
Side = Callable[[], Callable[[], None]]


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    me, mine = ours.alone()
    load = TINY._replace(together=LOADS[name].together) if tiny else LOADS[name]
    has = ours.size.of_device(mine) or load.least
    if has < load.least:
        said = f"needs {load.least / GIB:.0f} GiB of device memory, and there are {has / GIB:.0f}"
        yield Row(name, "throughput", said, verdict="left out")
        return
    if name == "resnet18":
        yield from images(name, load, me, mine, tiny)
    else:
        yield from language(name, load, me, mine, tiny)


def images(name: str, load: Load, me: ours.ranks.Ranks, mine: Device, tiny: bool) -> Iterator[Row]:
    samples, model = ours.images(load.batch * load.steps), "cnn" if tiny else "resnet18"
    fixed = [*ours.IMAGES, "--engine", "ddp", "--model", model, "--batch-size", str(load.batch)]
    count = load.batch * load.steps
    mine_side = lambda: ours.Ours([*fixed, *COMPILED], samples.task(), me, mine).epoch  # noqa: E731
    hand_side = lambda: by_hand.images(model, samples, load.batch, mine.torch)  # noqa: E731
    for kind, seconds, other in measured([mine_side, hand_side], load, mine):
        yield Row(name, f"{kind}, bf16", count / seconds, "images/s", other and count / other, BY_HAND)
    eager = [*fixed, *(word for word in COMPILED if word != "--compile")]
    plain = ours.Ours(eager, samples.task(), me, mine).epoch
    seconds = median(timed([plain], load)[0])
    yield Row(name, "ddp, not compiled, bf16", count / seconds, "images/s")


def language(name: str, load: Load, me: ours.ranks.Ranks, mine: Device, tiny: bool) -> Iterator[Row]:
    form = SIZES["tiny"]._replace(context=32, layers=1) if tiny else SIZES[name.removeprefix("gpt-")]
    vocabulary = 512 if tiny else ours.VOCABULARY
    count = load.batch * load.steps
    packed = ours.tokens(count, form.context, vocabulary)
    task = ours.text(packed, count, form.context, vocabulary)
    fixed = ours.options_of(form._asdict())
    common = [*("--task", "text", "--data", ours.os.devnull, "--model", "gpt"), *fixed]
    common += ["--batch-size", str(load.batch)]
    made: list[ours.Ours] = []

    def mine_side(*options: str) -> Callable[[], None]:
        made.append(ours.Ours([*common, *options], task, me, mine))
        return made.pop().epoch if not load.together else made[-1].epoch

    hand_side = lambda: by_hand.language(form, packed, vocabulary, load.batch, mine.torch)  # noqa: E731
    sides: list[Side] = [lambda: mine_side("--engine", "ddp", *COMPILED), hand_side]
    work = ours.size.of_work(ours.config.parse(common), task, mine, 1)
    assert work
    for kind, seconds, other in measured(sides, load, mine):
        rates, others = work.rates(count / seconds), work.rates(count / other) if other else {}
        for key, unit in (("tokens_per_second", "tokens/s"), ("model_flop_utilisation", "MFU")):
            if key in rates:
                yield Row(name, f"{kind}, bf16", rates[key], unit, others.get(key), BY_HAND if other else "")
    made.clear()
    ours.forget(mine)
    if ours.importable("deepspeed"):
        run = mine_side("--zero-stage", "1", "--precision", "bf16", "--clip", "0")
        seconds = median(timed([run], load)[0])
        for key, value in work.rates(count / seconds).items():
            unit = "MFU" if "flop" in key else "tokens/s"
            yield Row(name, "deepspeed, ZeRO 1, bf16, not compiled", value, unit)


def measured(sides: list[Side], load: Load, mine: Device) -> Iterator[tuple[str, float, float | None]]:
    """Yield what was measured and the seconds of a round, ours and by hand.

    If one side at a time is in memory, ours comes first alone: the other may not end in time.
    """
    if load.together:
        first, second = timed([side() for side in sides], load)
        yield "ddp, compiled", median(first), median(second)
        return
    first = timed([sides[0]()], load)[0]
    yield "ddp, compiled, alone", median(first), None
    ours.forget(mine)
    second = timed([sides[1]()], load)[0]
    ours.forget(mine)
    yield "ddp, compiled", median(first), median(second)


def timed(runs: list[Callable[[], None]], load: Load) -> list[list[float]]:
    """Return the seconds of the rounds of each run. The runs take turns, after a round that compiles."""
    seconds: list[list[float]] = [[] for _ in runs]
    for turn in range(load.rounds + 1):
        for number in range(len(runs)) if turn % 2 else reversed(range(len(runs))):
            began = time.perf_counter()
            runs[number]()
            if turn:
                seconds[number].append(time.perf_counter() - began)
    return seconds
