"""Many short trainings in one process a rank: starting one process each takes far longer.

matrix.py CASES OUT: CASES is JSON, {name: options of jobgen.train}; OUT receives, from rank 0, JSON with
what each case gave: losses and rates of every step, accuracy, or the error.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jobgen.train import config, data, device, engines, evaluation, loop, peers, ranks, report
from jobgen.train.config import recipe, refusals
from jobgen.train.data import sampling
from jobgen.train.data.feed import MicroBatches
from jobgen.train.errors import BadInput

SAMPLES, TESTED = 285, 90  # four batches of 64 and one of 29; uneven over two ranks


def numbered_digits() -> data.Data:
    """Some of the digits; the first pixels, which are always white, hold each sample's number."""
    digits = data.digits()
    images = digits.train.images[:SAMPLES].copy()
    number = np.arange(SAMPLES)
    images[:, 0, 0, 0], images[:, 0, 0, 7] = number // 17, number % 17
    train = data.Split(images, digits.train.labels[:SAMPLES])
    test = data.Split(digits.test.images[:TESTED], digits.test.labels[:TESTED])
    return digits._replace(train=train, test=test)


def normalised(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    """A model with BatchNorm, for --model matrix:normalised."""
    layers = torch.nn.Conv2d(shape[0], 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten()
    return torch.nn.Sequential(*layers, torch.nn.Linear(8 * (shape[1] - 2) * (shape[2] - 2), classes))


def idle(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    """A model that makes no use of one of its layers."""
    model = normalised(shape, classes)
    model[0].register_module("spare", torch.nn.Linear(2, 2))
    return model


def tied(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    """A model whose first and last but one dense layers are the same."""
    dense = torch.nn.Linear(64, 64)
    layers = torch.nn.Flatten(), dense, torch.nn.ReLU(), dense, torch.nn.Linear(64, classes)
    return torch.nn.Sequential(*layers)


def late(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    """A model whose weights are all in its last layer."""
    return torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.ReLU(), torch.nn.Linear(shape[1] * shape[2], classes)
    )


class Scaled(torch.nn.Module):
    """A model with a weight that is a single number."""

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        self.inner, self.scale = late(shape, classes), torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.inner(images) * self.scale


def scaled(shape: tuple[int, int, int], classes: int) -> torch.nn.Module:
    return Scaled(shape, classes)


class Recorder:
    """The engine, and the numbers of the samples that it was given to count."""

    def __init__(self, inner: engines.Engine, samples: data.Data) -> None:
        self._inner = inner
        self._samples = samples
        self.seen: list[int] = []
        self.norms: list[float | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def train_step(self, micro_batches: MicroBatches, total: int) -> torch.Tensor:
        micros = list(micro_batches)
        for images, _, real, *_ in micros:
            pixels = (images[:real] * self._samples.std[0] + self._samples.mean[0]) * self._samples.full
            pixels = pixels.round().long()
            self.seen += (pixels[:, 0, 0, 0] * 17 + pixels[:, 0, 0, 7]).tolist()
        loss = self._inner.train_step(MicroBatches(len(micros), iter(micros)), total)
        norm = self._inner.gradient_norm()
        self.norms.append(None if norm is None else float(norm))
        return loss


def run_case(options: list[str], samples: data.Data, me: ranks.Ranks, mine: device.Device) -> dict[str, Any]:
    settings = config.parse(["--model", "mlp", "--epochs", "1", "--log-every", "1", *options])
    how = recipe.resolve(settings, me.world_size)
    refusals.check_device(how.config, how.settings, mine.kind)
    task = samples.task()
    what = evaluation.measures(task, settings.loss, settings.metric, settings.loss_by)
    per_epoch = sampling.steps_per_epoch(len(task.train), *how.batch, how.parallel)
    schedule = how.schedule(per_epoch)
    trainer = Recorder(engines.build(how, schedule, task, me, mine), samples)
    with tempfile.TemporaryDirectory() as folder:
        run = report.Run({"JOBGEN_RUN_DIR": folder}, report.Clock(), me.rank)
        run.line = lambda text: None  # type: ignore[method-assign]
        scores, _ = loop.Training(trainer, task, what, mine, how.batch, settings, run).run()
        rows = metrics(Path(folder)) if me.rank == 0 else []
    return {
        "losses": [row["loss"] for row in rows],
        "rates": [row["lr"] for row in rows],
        "accuracy": scores.metrics["accuracy"],
        "test_loss": scores.loss,
        "schedule": schedule.block,
        "shares": peers.exchange([list(trainer.share), trainer.seen], mine),
        "norms": trainer.norms,
    }


def metrics(folder: Path) -> list[dict[str, Any]]:
    rows: Iterator[dict[str, Any]] = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row for row in rows if row["event"] == "step"]


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    samples = numbered_digits()
    results: dict[str, Any] = {}
    for name, options in json.loads(Path(sys.argv[1]).read_text()).items():
        began = time.perf_counter()
        try:
            results[name] = run_case(options, samples, me, mine)
        except BadInput as error:
            results[name] = {"error": str(error)}
        results[name]["seconds"] = round(time.perf_counter() - began, 2)
        if me.rank == 0:
            Path(sys.argv[2]).write_text(json.dumps(results))
    torch.distributed.barrier()
    os._exit(0)  # as jobgen.train does: gloo's threads may abort an orderly end


if __name__ == "__main__":
    main()
