"""Time from the start of a command to the end of the first step, with two ranks on digits.

A rendered script is compared with the same training, started by hand with mpirun.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, medians, wall_seconds
from jobgen.config import read_spec
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render

RUNS = 5
TRAINING = ("--task", "digits", "--epochs", "1")
# The marks in a run's status.json, in their order, and the part of the start-up before each.
PARTS = {
    "ranks": "Python, options, rank discovery (MPI_Init)",
    "torch": "import of torch",
    "data": "data",
    "peers": "the ranks meet",
    "engine": "import of deepspeed, model, engine",
    "first_step": "first step",
}
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def figures() -> Iterator[Figure]:
    bin_dir = str(Path(sys.executable).parent)
    env = {**os.environ, **ROOT, "PATH": f"{bin_dir}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    options = {"ranks_per_node": "2", "launcher": "mpirun"}
    with tempfile.TemporaryDirectory() as top:
        script = Path(top) / "job.sh"
        script.write_text(render(resolve(read_spec("local", options, TRAINING))))
        by_hand = [
            "mpirun",
            "-np",
            "2",
            "--oversubscribe",
            "--bind-to",
            "none",
            "python3",
            "-m",
            "jobgen.train",
            *TRAINING,
        ]
        ours, hand = [], []
        for _ in range(RUNS):
            ours.append(_first_step(["bash", str(script)], top, env))
            hand.append(_first_step(by_hand, top, env))
    mine, theirs = medians([run[0] for run in ours], [run[0] for run in hand])
    yield Figure("two ranks, from start to first step", mine, "s", theirs, "mpirun by hand")
    marks = [run[1] for run in ours]
    before = "the script and mpirun"
    yield Figure(f"  {before}", statistics.median(run[0] - run[1]["first_step"] for run in ours), "s")
    for earlier, (name, what) in zip([None, *PARTS], PARTS.items(), strict=False):
        took = [run[name] - (run[earlier] if earlier else 0) for run in marks]
        yield Figure(f"  {what}", statistics.median(took), "s")


def _first_step(command: list[str], cwd: str, env: dict[str, str]) -> tuple[float, dict[str, float]]:
    """Return the seconds from the start of a command to the end of its first step, and the marks of rank 0.

    The marks are in seconds from the start of rank 0.
    """
    shutil.rmtree(Path(cwd) / "runs", ignore_errors=True)
    run = Path(cwd) / "runs" / "by-hand"
    start = time.time()
    wall_seconds(command, cwd=cwd, env={**env, "JOBGEN_RUN_DIR": str(run)})
    [path] = (Path(cwd) / "runs").glob("*/status.json")
    status = json.loads(path.read_text())
    first = status["startup"]["first_step"]
    return float(status["ended"]) - status["seconds"] + first - start, status["startup"]
