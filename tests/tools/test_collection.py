"""The counts over a collection of scripts: here over a small one that the test writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

# The SHA-256 of these paths begins with 4, 7 and d.
PATHS = ("c/job.sh", "d/job.sh", "b/job.sh")
SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2 --time=01:00:00 --comment={}\nsrun python train.py\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path in PATHS:
        file = tmp_path / "data" / path
        file.parent.mkdir(parents=True)
        file.write_text(SCRIPT.format(path[0]))
    return tmp_path


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "tools.collection",
        str(checkout),
        "--counts",
        str(checkout / "counts.json"),
        "--sample",
        "1",
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_change_of_the_counts_is_seen(checkout: Path) -> None:
    first = run(checkout, "--write", "--shellcheck", "1")
    assert (first.returncode, first.stderr.splitlines()[-1]) == (1, "2/2"), first.stderr
    counts = json.loads((checkout / "counts.json").read_text())
    assert counts["scripts"] == counts["scheduler slurm"] == counts["toml rendered"] == 2
    again = run(checkout)
    assert (again.returncode, again.stdout.count("\n")) == (0, 1), again.stdout
    (checkout / "data/d/job.sh").write_text("#!/bin/bash\n#PBS -N x\nhostname\n")
    assert "2 ->       1  scheduler slurm" in run(checkout).stdout


def test_the_other_half_is_not_read(checkout: Path) -> None:
    assert "2 scripts" in run(checkout).stdout
    assert "1 scripts" in run(checkout, "--half", "other").stdout


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, "has no folder data" in done.stderr) == (2, True)
