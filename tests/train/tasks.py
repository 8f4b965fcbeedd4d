"""Many short trainings of own tasks in one process a rank; see matrix.py for why.

tasks.py CASES OUT: CASES is JSON, {name: options of jobgen.train}; OUT receives, from rank 0, JSON with the
metrics of each case, or its error. A case whose name begins with untried has no trial pass.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from jobgen.train import config, data, device, engines, evaluation, loop, peers, ranks, report, trial
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from jobgen.train.errors import BadInput


def run_case(
    options: list[str], tried: bool, folder: Path, me: ranks.Ranks, mine: device.Device
) -> dict[str, Any]:
    settings = config.parse(["--epochs", "2", "--log-every", "1", *options])
    how = recipe.resolve(settings, me.world_size)
    task = data.of(settings)
    what = evaluation.measures(task, settings.loss, settings.metric, settings.loss_by)
    schedule = how.schedule(sampling.steps_per_epoch(len(task.train), *how.batch, how.parallel))
    trainer = engines.build(how, schedule, task, me, mine)
    run = report.Run({"JOBGEN_RUN_DIR": str(folder)}, report.Clock(), me.rank)
    run.line = lambda text: None  # type: ignore[method-assign]
    if tried:
        trial.run(trainer, task, what, mine, settings, how.batch.micro)
    loop.Training(trainer, task, what, mine, how.batch, settings, run).run()
    if me.rank:
        return {}
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {
        "losses": [row["loss"] for row in rows if row["event"] == "step"],
        "epochs": [row for row in rows if row["event"] == "epoch"],
    }


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    results: dict[str, Any] = {}
    for name, options in json.loads(Path(sys.argv[1]).read_text()).items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                results[name] = run_case(options, not name.startswith("untried"), Path(folder), me, mine)
            except BadInput as error:
                results[name] = {"error": str(error)}
            torch.distributed.barrier()
        if me.rank == 0:
            Path(sys.argv[2]).write_text(json.dumps(results))
    torch.distributed.barrier()
    os._exit(0)  # as jobgen.train does: gloo's threads may abort an orderly end


if __name__ == "__main__":
    main()
