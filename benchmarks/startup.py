"""CPU time of each command in a new process, compared with importing only click and jinja2."""

from __future__ import annotations

import compileall
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jobgen
from benchmarks.measure import Figure, cpu_seconds, medians

RUNS = 25
OTHERS = 9
# Commands that call a scheduler or other programs run with --help: the rest is not our own time.
COMMANDS = (
    *("--version", "--help", "pbs --nodes 2 --launcher mpirun"),
    *("slurm --nodes 2 --launcher torchrun --explain --json", "slurm --job job.toml --set train.lr=0.1"),
    "pbs --site polaris --account me --queue debug --walltime 30m --directive '-l filesystems=home'",
    *("local", "submit slurm --dry-run", "check job.sh", "convert job.sh --to toml"),
    *("init --scheduler slurm --force", "schema", "site list", "site show polaris", "site check polaris"),
    *("site new --help", "site detect --help", "image --help", "man pbs", "help pbs", "version"),
    *("completion bash", "doctor --help", "status --help", "list --help", "logs --help", "cancel --help"),
    *("diff --help", "report --help"),
)
_SCRIPT = (
    "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=01:00:00\nset -euo pipefail\nsrun --nodes=2 ./a.out\n"
)
_JOB = "[resources]\nnodes = 2\n"


def figures() -> Iterator[Figure]:
    for folder in jobgen.__path__[:1]:
        compileall.compile_dir(folder, quiet=1)  # as pip does for an installed package
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("job.sh").write_text(_SCRIPT)
        Path("job.toml").write_text(_JOB)
        for command in COMMANDS:
            yield _figure(command, RUNS if command.startswith("pbs --nodes") else OTHERS)
        os.environ["_JOBGEN_COMPLETE"] = "bash"
        yield _figure("slurm --launcher ''", OTHERS, "the tab key behind jobgen slurm --launcher")
        del os.environ["_JOBGEN_COMPLETE"]


def _figure(command: str, runs: int, what: str | None = None) -> Figure:
    ours = [sys.executable, "-m", "jobgen", *shlex.split(command)]
    imports = [sys.executable, "-c", "import click, jinja2"]
    cpu_seconds(ours)  # the first run after an installation compiles the templates
    pairs = [(cpu_seconds(ours), cpu_seconds(imports)) for _ in range(runs)]
    mine, theirs = medians(*zip(*pairs, strict=True))
    return Figure(
        what or f"jobgen {command}, CPU time", mine * 1000, "ms", theirs * 1000, "import click, jinja2"
    )
