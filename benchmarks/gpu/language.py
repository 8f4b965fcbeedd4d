"""The program language: a GPT in ddp and DeepSpeed, each beside a loop by hand of that engine; and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from jobgen.train import config, explain, size
from jobgen.train.config.language import SIZES

from benchmarks.gpu import by_hand, ours
from benchmarks.gpu.images import timed
from benchmarks.gpu.ours import Here
from benchmarks.gpu.rows import Row

MIB = 2**20
SHORT = 128  # tokens of a sequence, for few activations
STAGES = (
    "--zero-stage 0",
    "--zero-stage 1",
    "--zero-stage 2",
    "--zero-stage 2 --offload optimizer",
    "--zero-stage 3 --offload optimizer",
    "--zero-stage 3 --offload all",
    "--zero-stage 3",
    "--engine fsdp",
)


def ddp(here: Here, tiny: bool, name: str) -> Iterator[Row]:
    yield from throughput(
        here, tiny, name, "ddp, compiled, bf16", ("--engine", "ddp", *ours.compiled()), "ddp"
    )


def zero_1(here: Here, tiny: bool, name: str) -> Iterator[Row]:
    import deepspeed  # noqa: F401

    options = ("--zero-stage", "1", "--precision", "bf16", "--clip", "0", *ours.compiled()[6:])
    yield from throughput(here, tiny, name, "ZeRO 1, bf16, not compiled", options, "zero_1")


def fsdp(here: Here, tiny: bool, name: str) -> Iterator[Row]:
    options = ("--engine", "fsdp", "--precision", "bf16", *ours.compiled()[2:])
    yield from throughput(here, tiny, name, "FSDP, compiled, bf16", options, "fsdp")


def throughput(
    here: Here, tiny: bool, name: str, what: str, words: Sequence[str], engine: str
) -> Iterator[Row]:
    part = f"GPT-{name}"
    form = SIZES["tiny"]._replace(context=32, layers=1) if tiny else SIZES[name]
    batch, steps, rounds = (4, 2, 1) if tiny else {"124m": (16, 30, 6), "1.3b": (4, 12, 2)}[name]
    vocabulary = 512 if tiny else ours.VOCABULARY
    packed = ours.tokens(batch * steps, form.context, vocabulary)
    task = ours.text(packed, batch * steps, form.context, vocabulary)
    options = ours.language(form, *words, "--batch-size", str(batch), "--epochs", str(rounds + 1))
    before = ours.used(here)
    mine = ours.Ours(options, task, here)
    taken = ours.peak(here, lambda: mine.rounds(ours.text(packed, 2 * batch, form.context, vocabulary)))
    yield Row(part, f"{what}: memory with activations", (taken - before) / MIB, "MiB")
    loop = by_hand.language(form, packed, vocabulary, batch, here.device.torch, engine)
    others: list[float] = []
    seconds = mine.rounds(between=lambda: others.append(timed(loop.epoch)))
    work = size.of_work(config.parse(options), task, here.device, 1)
    assert work
    rates, by = (work.rates(batch * steps / median(each[1:])) for each in (seconds, others))
    for key, unit in (("tokens_per_second", "tokens/s"), ("model_flop_utilisation", "MFU")):
        if key in rates:
            yield Row(part, what, rates[key], unit, by[key], by_hand.NAME)
    epochs = [row["samples_per_second"] for row in mine.events if row["event"] == "epoch"][1:]
    rate, other = median(epochs) * form.context, by["tokens_per_second"]
    yield Row(part, f"{what}, without the evaluation", rate, "tokens/s", other, by_hand.NAME)


def memory(here: Here, tiny: bool, name: str) -> Iterator[Row]:
    """Measure a step at each ZeRO stage and with FSDP, with few activations."""
    import deepspeed  # noqa: F401

    vocabulary = 512 if tiny else ours.VOCABULARY
    form = SIZES["tiny" if tiny else "124m"]._replace(context=SHORT)
    task = ours.text(ours.tokens(2, SHORT, vocabulary), 2, SHORT, vocabulary)
    options = ours.language(form, "--batch-size", "1", "--precision", "bf16", "--epochs", "1")
    for stage in STAGES[-1:] if tiny else STAGES:
        before = ours.used(here)
        training = ours.Ours([*options, *stage.split()], task, here)
        taken = ours.peak(here, training.rounds) - before
        model = size.of_model(training.how.settings, task)
        needs = {need.options: need.device for need in explain.needs(model, 1, 1, explain.Buffers())}
        yield Row("memory", stage, taken / MIB, "MiB", needs[stage] / MIB, "estimate of --explain")
        del training
        ours.forget(here)


PARTS = (ddp, zero_1, fsdp, memory)
