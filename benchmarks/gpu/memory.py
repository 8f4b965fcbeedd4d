"""Part memory: what a step of a GPT takes on the device at each ZeRO stage, with few activations."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.gpu import ours
from benchmarks.gpu.rows import Row

CONTEXT = 128
STAGES = (
    "--zero-stage 0",
    "--zero-stage 1",
    "--zero-stage 2",
    "--zero-stage 2 --offload optimizer",
    "--zero-stage 3 --offload all",
    "--zero-stage 3",
)


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    if not ours.importable("deepspeed"):
        yield Row(name, "ZeRO", "deepspeed cannot be imported", verdict="left out")
        return
    from jobgen.train import explain

    me, mine = ours.alone()
    vocabulary = 512 if tiny else ours.VOCABULARY
    task = ours.text(ours.tokens(2, CONTEXT, vocabulary), 2, CONTEXT, vocabulary)
    fixed = ours.language("tiny" if tiny else "124m", "--context", str(CONTEXT), "--batch-size", "1")
    for options in STAGES[-1:] if tiny else STAGES:
        before = ours.used(mine)
        training = ours.Ours([*fixed, "--precision", "bf16", *options.split()], task, me, mine)
        taken = ours.peak(mine, training.epoch) - before
        model = ours.size.of_model(training.how.settings, task)
        needs = {need.options: need.device for need in explain.needs(model, 1, 1)}
        mib = 2**20
        yield Row(name, options, taken / mib, "MiB", needs[options] / mib, "estimate of --explain")
        del training
        ours.forget(mine)
