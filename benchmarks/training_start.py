"""Two ranks on digits: from the start of the command to the end of the first step, in a rendered
script, against the same training started by hand with mpirun."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, medians, wall_seconds
from jobgen.config import read_spec
from jobgen.plan import resolve
from jobgen.render import render

RUNS = 5
TRAINING = ("--task", "digits", "--epochs", "1")
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
        pairs = [
            (_first_step(["bash", str(script)], top, env), _first_step(by_hand, top, env))
            for _ in range(RUNS)
        ]
    ours, hand = medians(*zip(*pairs, strict=True))
    yield Figure("two ranks, from start to first step", ours, "s", hand, "mpirun by hand")


def _first_step(command: list[str], cwd: str, env: dict[str, str]) -> float:
    """Seconds from the start of a command to its first step, by the run's own status."""
    shutil.rmtree(Path(cwd) / "runs", ignore_errors=True)
    run = Path(cwd) / "runs" / "by-hand"
    start = time.time()
    wall_seconds(command, cwd=cwd, env={**env, "JOBGEN_RUN_DIR": str(run)})
    [path] = (Path(cwd) / "runs").glob("*/status.json")
    status = json.loads(path.read_text())
    return float(status["ended"]) - status["seconds"] + status["startup"]["first_step"] - start
