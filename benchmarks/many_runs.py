"""CPU time of ``jobgen list`` for many runs, compared with reading plan.json of each.

The scheduler is simulated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, cpu_seconds, medians

RUNS = 10_000
TOOLS = {
    "sbatch": "echo 1",
    "squeue": f'for ((i = 1; i <= {RUNS}; i++)); do echo "$i|PENDING|UNLIMITED|Resources"; done',
}
READ = """\
import json, pathlib
for run in pathlib.Path("runs").iterdir():
    json.loads((run / "plan.json").read_bytes())
"""


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as top:
        (tools := Path(top, "bin")).mkdir()
        for name, line in TOOLS.items():
            (tools / name).write_text(f"#!/bin/bash\n{line}\n")
            (tools / name).chmod(0o755)
        os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
        jobgen = [sys.executable, "-m", "jobgen"]
        subprocess.run([*jobgen, "submit", "slurm", "--", "a.out"], cwd=top, check=True, capture_output=True)
        [run] = Path(top, "runs").iterdir()
        for number in range(2, RUNS + 1):
            Path(shutil.copytree(run, f"{run}-{number}"), "job-id").write_text(f"{number}\n")
        pairs = [
            (cpu_seconds([*jobgen, "list"], top), cpu_seconds([sys.executable, "-c", READ], top))
            for _ in range(3)
        ]
    ours, other = medians(*zip(*pairs, strict=True))
    yield Figure(f"jobgen list of {RUNS:,} runs, CPU time", ours, "s", other, "reading plan.json of each")
