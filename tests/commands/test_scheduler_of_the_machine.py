"""Commands without the name of a scheduler, or of a dialect: those of the machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support import jobs

SLURM = {"sbatch": "true"}
OPENPBS = {"qsub": "echo pbs_version = 22.05.11"}
TORQUE = {"qsub": "echo Version: 6.1.3"}


def jobgen(cwd: Path, commands: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    path = jobs.path_with(cwd / "bin", **commands)
    return jobs.jobgen(*words, cwd=cwd, env={**os.environ, "PATH": str(path)})


@pytest.mark.parametrize(
    ("commands", "title", "line"),
    [
        (SLURM, "Slurm, because sbatch is on PATH", "#SBATCH --nodes=2\n"),
        (OPENPBS, "PBS Pro, because qsub says pbs_version", "#PBS -l select=2:"),
        (TORQUE, "Torque, because qsub has Torque's version", "#PBS -l nodes=2:ppn="),
    ],
)
def test_a_job_is_submitted_to_it(commands: dict[str, str], title: str, line: str, tmp_path: Path) -> None:
    done = jobgen(tmp_path, commands, "submit", "--dry-run", "--nodes", "2", "--", "train.py")
    assert (done.returncode, line in done.stdout) == (0, True), done.stderr
    assert f"jobgen: note: the scheduler is {title}\n" in done.stderr


def test_without_one_the_name_is_needed(tmp_path: Path) -> None:
    done = jobgen(tmp_path, {}, "submit", "--", "train.py")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert (
        "neither sbatch nor qsub is on PATH; name the scheduler: jobgen submit pbs or slurm, or"
        in done.stderr
    )


@pytest.mark.parametrize(("commands", "line"), [(OPENPBS, "-l select=2"), (TORQUE, "-l nodes=2")])
def test_pbs_is_the_one_of_the_machine(commands: dict[str, str], line: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=2\nhostname\n")
    done = jobgen(tmp_path, commands, "convert", "job.sh", "--to", "pbs")
    assert line in done.stdout


def test_else_the_sentence_has_both(tmp_path: Path) -> None:
    done = jobgen(tmp_path, SLURM, "convert", "job.sh", "--to", "pbs")
    assert done.returncode == 2
    assert done.stderr.endswith("has several dialects: use pbspro (PBS Pro) or torque (Torque)\n")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("perlmuter", "did you mean perlmutter? "),
        ("lone", "did you mean lonestar6? "),
        ("zzzzzz", "no such site: jobgen site list"),
    ],
)
def test_an_unknown_site_has_the_nearest(name: str, near: str, tmp_path: Path) -> None:
    done = jobgen(tmp_path, {}, "slurm", "--site", name)
    assert (done.returncode, done.stderr.count("\n"), near in done.stderr) == (2, 1, True), done.stderr
