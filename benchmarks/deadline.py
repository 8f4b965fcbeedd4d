"""The cost of asking all ranks after each step whether to stop, compared with an all-reduce of one number.

The all-reduce is the cost of asking and waiting for the answer. No step runs in between that could hide it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure


def figures() -> Iterator[Figure]:
    for ranks in (1, 2, 4):
        launch = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        program = str(Path(__file__).with_name("deadline_ranks.py"))
        env = {**os.environ, "OMP_NUM_THREADS": "1", "JOBGEN_ACCELERATOR": "cpu"}
        command = [sys.executable, "-m", "torch.distributed.run", *launch, program]
        done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
        ours, other = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))
        yield Figure(
            f"asking {ranks} rank(s) whether to stop", 1e6 * ours, "us", 1e6 * other, "an all-reduce"
        )
