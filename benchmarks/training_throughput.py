"""Images per second on 1 and 2 CPU ranks. Both sides run in turn in the same processes.

Our ddp and fsdp are compared with torch loops written by hand, our deepspeed engine and pipeline with
DeepSpeed's own minimal loops, our colossalai engine with ColossalAI's Booster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure

ROUNDS = 3  # per start
# The side that is built first in each start: its place in memory changes the speed by a few percent.
STARTS = ("ours", "other", "ours", "other")
SAMPLES = 4096  # as in throughput_ranks.py, which would import torch
AGAINST = {
    "ddp": "a torch loop by hand",
    "fsdp": "a loop by hand with fully_shard",
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
            # The fastest round of each side: other work on the machine only makes rounds slower.
            ours, other = (
                SAMPLES / min(second for start in starts for second in start[side]) for side in (0, 1)
            )
            yield Figure(f"{kind}, {ranks} rank(s), small conv net", ours, "images/s", other, against)


def _seconds(kind: str, ranks: int, first: str) -> list[list[float]]:
    """Return the seconds of every round, of ours and of the alternative."""
    program = [str(Path(__file__).with_name("throughput_ranks.py")), kind, str(ROUNDS), first]
    launch = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    python = str(COLOSSALAI) if kind == "colossalai" else sys.executable
    command = [python, "-m", "torch.distributed.run", *launch, *program]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JOBGEN_ACCELERATOR": "cpu"}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[")))
