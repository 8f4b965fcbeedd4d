"""Images a second on 1 and 2 CPU ranks: our ddp against a torch loop written by hand, our deepspeed
engine and pipeline against DeepSpeed's own minimal loops, our colossalai against its Booster; both sides by
turns in the same processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, medians

ROUNDS = 3  # of each start
# Which side is built first in each: where its memory lies makes a difference of a few percent.
STARTS = ("ours", "other", "ours", "other")
SAMPLES = 4096  # of throughput_ranks.py, which imports torch
AGAINST = {
    "ddp": "a torch loop by hand",
    "deepspeed": "DeepSpeed's minimal loop",
    "pipeline": "DeepSpeed's minimal pipeline",
    "colossalai": "ColossalAI's Booster, torch_ddp",
}
COLOSSALAI = Path(__file__).parents[1] / ".venv-colossalai/bin/python"  # of make colossalai


def figures() -> Iterator[Figure]:
    for kind, against in AGAINST.items():
        if kind == "colossalai" and not COLOSSALAI.exists():
            continue
        for ranks in (2,) if kind == "pipeline" else (1, 2):
            starts = [_seconds(kind, ranks, first) for first in STARTS]
            sides = ([second for start in starts for second in start[side]] for side in (0, 1))
            ours, other = (SAMPLES / seconds for seconds in medians(*sides))
            yield Figure(f"{kind}, {ranks} rank(s), small conv net", ours, "images/s", other, against)


def _seconds(kind: str, ranks: int, first: str) -> list[list[float]]:
    """Of every round, ours and the other's."""
    program = [str(Path(__file__).with_name("throughput_ranks.py")), kind, str(ROUNDS), first]
    launch = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    python = str(COLOSSALAI) if kind == "colossalai" else sys.executable
    command = [python, "-m", "torch.distributed.run", *launch, *program]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JOBGEN_ACCELERATOR": "cpu"}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[")))
