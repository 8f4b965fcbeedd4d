"""Seconds to save a checkpoint, until it is on the disk, and to load one.

They are compared with torch.save and fsync, and torch.load, of the same states in the same number of
processes. Both sides run in turn in the same processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, medians

ROUNDS = 9
# engine, ranks, millions of weights
CASES = (("ddp", 1, 10), ("ddp", 2, 10), ("deepspeed", 2, 10), ("ddp", 1, 100), ("ddp", 2, 100))


def figures() -> Iterator[Figure]:
    for kind, ranks, millions in CASES:
        seconds = _seconds(kind, ranks, millions)
        zero = " ZeRO 1" if kind == "deepspeed" else ""
        what = f"{kind}{zero}, {ranks} rank(s), {millions} M weights with Adam: "
        yield Figure(what + "save", *_pair(seconds["save"]), "torch.save and fsync")
        # A run does this while it imports torch and loads its data.
        yield Figure(what + "verify", _pair(seconds["verify"])[0], "s")
        yield Figure(what + "load", *_pair(seconds["load"]), "torch.load")


def _pair(seconds: list[list[float]]) -> tuple[float, str, float]:
    ours, other = medians(*seconds)
    return ours, "s", other


def _seconds(kind: str, ranks: int, millions: int) -> dict[str, list[list[float]]]:
    """Return the seconds of every round, of ours and of the alternative."""
    program = [str(Path(__file__).with_name("checkpoint_ranks.py")), kind, str(millions), str(ROUNDS)]
    launch = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    command = [sys.executable, "-m", "torch.distributed.run", *launch, *program]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "JOBGEN_ACCELERATOR": "cpu"}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
