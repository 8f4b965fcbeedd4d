"""Many short trainings of language models in one process a rank, as matrix.py does it for images.

languages.py CASES OUT: CASES is JSON, {name: options of jobgen.train}; OUT receives, from rank 0, JSON with what
each case gave: losses and gradient norms of every step, the perplexity, the number of weights, and the largest
number of them that the first rank ever held while the model was made.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jobgen.train import config, data, device, engines, evaluation, loop, peers, ranks, report, size
from jobgen.train.config import recipe, refusals
from jobgen.train.data import sampling
from jobgen.train.errors import BadInput
from jobgen.train.models import gpt, hf


def run_case(options: list[str], me: ranks.Ranks, mine: device.Device) -> dict[str, Any]:
    settings = config.parse(["--epochs", "1", "--log-every", "1", *options])
    how = recipe.resolve(settings, me.world_size)
    refusals.check_device(how.config, how.settings, mine.kind)
    task = data.of(settings)
    torch.distributed.barrier()
    task.release()
    schedule = how.schedule(sampling.steps_per_epoch(len(task.train), *how.batch, how.parallel))
    with watched() as held:
        engine = engines.build(how, schedule, task, me, mine)
    what = evaluation.measures(task, settings.loss, None, settings.loss_by)
    with tempfile.TemporaryDirectory() as folder:
        run = report.Run({"JOBGEN_RUN_DIR": folder}, report.Clock(), me.rank)
        run.line = lambda text: None  # type: ignore[method-assign]
        scores, _ = loop.Training(engine, task, what, mine, how.batch, settings, run).run()
        lines = Path(folder, "metrics.jsonl").read_text().splitlines() if me.rank == 0 else []
    rows = [row for row in map(json.loads, lines) if row["event"] == "step"]
    return {
        "losses": [row["loss"] for row in rows],
        "norms": [row["gradient_norm"] for row in rows],
        "perplexity": scores.metrics["perplexity"],
        "parameters": size.of_model(settings, task).parameters,
        "held": max(held),
    }


@contextmanager
def watched() -> Iterator[list[int]]:
    """Yield a list of how many weights were in memory, after each layer of a model was made."""
    counts: list[int] = []
    made: list[torch.nn.Module] = []
    layers, of_transformers = gpt.layers, hf._model

    def count(layer: torch.nn.Module) -> None:
        made.append(layer)
        weights = [p for each in dict.fromkeys(made) for p in each.parameters()]
        counts.append(sum(p.data.numel() + getattr(p, "ds_tensor", p[:0]).numel() for p in weights))

    def watching(
        *args: Any, divide: Callable[[torch.nn.Module], None], **named: Any
    ) -> list[torch.nn.Module]:
        def divided(layer: torch.nn.Module) -> None:
            count(layer)
            divide(layer)
            count(layer)

        return layers(*args, divide=divided, **named)

    def whole(*args: Any) -> torch.nn.Module:
        model = of_transformers(*args)
        count(model)
        return model

    gpt.layers, hf._model = watching, whole
    try:
        yield counts
    finally:
        gpt.layers, hf._model = layers, of_transformers


def main() -> None:
    me = ranks.discover(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    torch.set_num_threads(1)
    peers.connect(me, mine)
    results: dict[str, Any] = {}
    for name, options in json.loads(Path(sys.argv[1]).read_text()).items():
        try:
            results[name] = run_case(options, me, mine)
        except BadInput as error:
            results[name] = {"error": str(error)}
        if me.rank == 0:
            Path(sys.argv[2]).write_text(json.dumps(results))
    torch.distributed.barrier()
    os._exit(0)  # as jobgen.train does: gloo's threads may abort an orderly end


if __name__ == "__main__":
    main()
