"""A sweep of 10,000 points as one array script, compared with one script per point.

If JOBGEN_BENCH_CLUSTER is set, to the MINICLUSTER_ROOT of the test cluster, its submission is compared with a
loop of sbatch.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure
from jobgen.config import read_spec
from jobgen.jobfile.reader import layer_of
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render

SIDE = 100
POINTS = SIDE * SIDE
LOOP = 20  # jobs, from which the time of a loop over all points is extrapolated
CLUSTER = Path(__file__).resolve().parent.parent / "tests/cluster/minicluster.sh"
SWEEPS: dict[str, dict[str, Any]] = {
    "of 100 x 100 points": {"first": list(range(SIDE)), "second": list(range(SIDE))},
    "of 10,000 zipped points": {
        "mode": "zip",
        "a": list(range(POINTS)),
        "b": [i / 7 for i in range(POINTS)],
    },
}


def script(*words: str, sweep: dict[str, Any] | None = None) -> str:
    layer = layer_of({"sweep": sweep} if sweep else {}, ("train.py", *words), lambda place: "here")
    return render(resolve(read_spec("slurm", {"launcher": "torchrun"}, (), layer)))


def figures() -> Iterator[Figure]:
    plain = len(script())
    start = time.perf_counter()
    each = sum(len(script("--a", str(i % SIDE), "--b", str(i // SIDE))) for i in range(POINTS))
    loop = time.perf_counter() - start
    for name, sweep in SWEEPS.items():
        start = time.perf_counter()
        text = script(sweep=sweep)
        took = time.perf_counter() - start
        yield Figure(f"sweep {name}, rendered", took * 1000, "ms", loop * 1000, "10,000 scripts")
        yield Figure(f"sweep {name}, its script", len(text) / 1000, "kB", each / 1000, "10,000 scripts")
        yield Figure(f"sweep {name}, what it adds to one job's", (len(text) - plain) / 1000, "kB")
    if "JOBGEN_BENCH_CLUSTER" in os.environ:
        yield submission(script(sweep=SWEEPS["of 100 x 100 points"]))


def submission(text: str) -> Figure:
    env = {**os.environ, "MINICLUSTER_ROOT": os.environ["JOBGEN_BENCH_CLUSTER"]}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.sh").write_text(text)

        def run(*command: str) -> str:
            argv = [CLUSTER, "exec", "head", *command]
            done = subprocess.run(argv, cwd=folder, env=env, check=True, capture_output=True, text=True)
            return done.stdout

        def submit(command: str) -> float:
            start = time.perf_counter()
            ids = run("bash", "-c", command).split()
            took = time.perf_counter() - start
            run("scancel", *ids)
            return took

        array = submit("sbatch --parsable --hold job.sh")
        loop = submit(f"for i in {{1..{LOOP}}}; do sbatch --parsable --hold --array=$i job.sh; done")
    return Figure(
        "10,000 points submitted as one array", array, "s", loop / LOOP * POINTS, "one by one, from 20"
    )
