"""The preflight on 2 and 4 ranks of this machine, compared with ranks that import torch and connect."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jobgen.train.addresses import free_port

from benchmarks.measure import Figure, medians, wall_seconds

RUNS = 5
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
BY_HAND = """
import os
for name, source in (("RANK", "RANK"), ("WORLD_SIZE", "SIZE")):
    os.environ[name] = os.environ[f"OMPI_COMM_WORLD_{source}"]
import torch
torch.distributed.init_process_group("gloo")
torch.distributed.barrier()
os._exit(0)
"""


def figures() -> Iterator[Figure]:
    for ranks in (2, 4):
        ours, hand = [], []
        for _ in range(RUNS):
            ours.append(_run(ranks, ["-m", "jobgen.train", "preflight"]))
            hand.append(_run(ranks, ["-c", BY_HAND]))
        mine, theirs = medians(ours, hand)
        yield Figure(f"preflight, {ranks} ranks", mine, "s", theirs, "import torch, init_process_group")


def _run(ranks: int, python: list[str]) -> float:
    """Return the seconds of one launch. In the hostfile, each rank has a host of its own."""
    with tempfile.TemporaryDirectory() as run:
        hosts = "".join(f"127.0.0.{rank + 1} slots=1\n" for rank in range(ranks))
        (Path(run) / "hostfile").write_text(hosts)
        env = {
            **os.environ,
            **ROOT,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "JOBGEN_RUN_DIR": run,
            "JOBGEN_WORLD_SIZE": str(ranks),
            "JOBGEN_ACCELERATOR": "cpu",
        }
        mpirun = ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none"]
        return wall_seconds([*mpirun, sys.executable, *python], env=env)
