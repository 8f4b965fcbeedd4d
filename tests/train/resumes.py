"""Many short trainings that stop and go on, in one process a rank; see matrix.py for why.

resumes.py CASES OUT DIR: CASES is JSON, {name: options of jobgen.train}; checkpoints go to DIR/name. OUT
receives, from rank 0, JSON with what each case gave undisturbed, and from its checkpoints at STOPS. With
checkpoints already in DIR, made by another number of ranks, it is gone on from the first of these only.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
from jobgen.train import checkpoints, config, data, device, engines, evaluation, loop, peers, ranks, report
from jobgen.train.checkpoints import agreement, save, whole
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from jobgen.train.errors import BadInput
from torch import nn

SAMPLES, TESTED = 285, 90  # 5 steps an epoch with 64 samples, the last smaller; uneven over two ranks
EPOCHS, EVERY = 2, 3
# In the middle of each epoch: between two lines of metrics, with losses not yet told, and after a line.
STOPS = {"resumed": "step-000003", "later": "step-000009"}


def digits() -> data.Data:
    whole = data.digits()
    train = data.Split(whole.train.images[:SAMPLES], whole.train.labels[:SAMPLES])
    return whole._replace(
        train=train, test=data.Split(whole.test.images[:TESTED], whole.test.labels[:TESTED])
    )


def noisy(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """With running statistics, which each rank has of its own, and with random numbers in each step."""
    return nn.Sequential(
        nn.Conv2d(shape[0], 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.Linear(8 * shape[1] * shape[2], 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, classes),
    )


class Training:
    """One run of the whole module but for its process group, in a directory of its own."""

    def __init__(self, options: list[str], place: Path, me: ranks.Ranks, mine: device.Device) -> None:
        fixed = ["--model", "mlp", "--epochs", str(EPOCHS), "--log-every", "2", "--save-every", str(EVERY)]
        self.settings = config.parse([*fixed, *options])
        self.how = recipe.resolve(self.settings, me.world_size)
        self.data, self.me, self.mine, self.place = digits(), me, mine, place
        self.samples = self.data.task()
        self.measures = evaluation.measures(self.samples, self.settings.loss, self.settings.metric)
        self.run = report.Run({"JOBGEN_RUN_DIR": str(place)}, report.Clock(), me.rank)
        self.run.line = lambda text: None  # type: ignore[method-assign]
        self.run.prepare()

    def go(self, found: checkpoints.Checkpoint | None) -> dict[str, Any]:
        universal = found is not None and checkpoints.check(found, self.how, self.me.world_size)
        if universal:
            self.how.config["checkpoint"] = {"load_universal": True}
        size = len(self.samples.train)
        schedule = self.how.schedule(sampling.steps_per_epoch(size, *self.how.batch, self.how.parallel))
        trainer = engines.build(self.how, schedule, self.samples, self.me, self.mine)
        if found:
            torch.rand(7)  # random numbers that the run did not draw before
            settled = agreement.settle(
                found, checkpoints.Check(found, self.me.rank, self.me.world_size), self.mine, self.run
            )
            assert settled == found
            start = save.restore(trainer, found, universal, self.mine, self.run)
        else:
            start = checkpoints.Progress()
        facts = save.facts(self.how, self.samples, self.me.world_size)
        saver = save.Saver(trainer, self.mine, self.run, self.place / "checkpoints", facts, start)
        scores, steps = loop.Training(
            trainer, self.samples, self.measures, self.mine, self.how.batch, self.settings, self.run, saver
        ).run()
        with trainer.evaluation_mode():
            logits = trainer.predict(self.images(next(trainer.module.parameters()).dtype))
        rows = peers.exchange(None if logits is None else logits.float().tolist(), self.mine)
        return {
            "rows": self.rows() if self.me.rank == 0 else [],
            "scores": scores,
            "steps": steps,
            "logits": next(row for row in reversed(rows) if row is not None),
            "universal": universal,
        }

    def images(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """As many test images as one forward pass takes."""
        pixels = torch.from_numpy(self.data.test.images[: self.how.batch.micro]).float()
        return ((pixels / self.data.full - self.data.mean[0]) / self.data.std[0]).to(dtype)

    def rows(self) -> list[dict[str, Any]]:
        lines = map(json.loads, (self.place / "metrics.jsonl").read_text().splitlines())
        timed = ("seconds", "samples_per_second", "save_seconds")
        return [
            {key: value for key, value in row.items() if key not in timed}
            for row in lines
            if row["event"] in ("step", "evaluation", "epoch")
        ]

    def exported(self, place: Path) -> dict[str, Any]:
        """What plain torch makes of the last checkpoint in `place`."""
        found = checkpoints.at(place)
        shape, outputs = self.samples.train.shape, self.samples.outputs
        model = engines.model(found.settings, shape, outputs, self.mine)
        given = {}
        for ema in (False, True) if found.settings.ema else (False,):
            weights = whole.weights(found, ema)
            model.load_state_dict(weights)
            model.eval()
            with torch.no_grad():
                logits = model(self.images())
                given["ema" if ema else "plain"] = (
                    logits[0] if isinstance(logits, tuple) else logits
                ).tolist()
        return {**given, "keys": sorted(weights)}


def run_case(options: list[str], place: Path, me: ranks.Ranks, mine: device.Device) -> dict[str, Any]:
    first = place / "first"
    again = (first / "checkpoints").exists()
    torch.distributed.barrier()
    given: dict[str, Any] = {}
    if not again:
        given["whole"] = Training(options, first, me, mine).go(None)
    for name, stop in STOPS.items() if not again else [("resumed", STOPS["resumed"])]:
        found = checkpoints.find(stop, first / "checkpoints")
        second = Training(options, place / f"{name}-{me.world_size}", me, mine)
        given[name] = second.go(found)
    if me.rank == 0 and "--expert-parallel" not in options:
        given["exported"] = second.exported(second.place)
    torch.distributed.barrier()
    return given


def main() -> None:
    cases, out, place = (Path(argument) for argument in sys.argv[1:])
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    results: dict[str, Any] = {}
    for name, options in json.loads(cases.read_text()).items():
        began = time.perf_counter()
        try:
            results[name] = run_case(options, place / name, me, mine)
        except BadInput as error:
            results[name] = {"error": str(error)}
        results[name]["seconds"] = round(time.perf_counter() - began, 2)
        if me.rank == 0:
            out.write_text(json.dumps(results))
    torch.distributed.barrier()
    os._exit(0)  # as jobgen.train does: gloo's threads may abort an orderly end


if __name__ == "__main__":
    main()
