"""The launcher of a job whose options name none: that of the site, or by the program."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support.jobs import jobgen

from jobgen import JobSpec
from jobgen.config import read_spec
from jobgen.jobfile.reader import read_job
from jobgen.plan.plan import resolve

PYTHON = "torchrun, the default for a Python program"
TRAINING = "deepspeed, the default for the training module"
ONE = "none, the default for one process of another program: --ranks-per-node N starts more"
SRUN = "srun, the default for several ranks of another program"
MPIRUN = "mpirun, the default for several ranks of another program"
CASES = [
    ("slurm --nodes 2 --gpus-per-node 4 -- train.py", PYTHON),
    ("pbs -- python train.py", PYTHON),
    ("local -- python3.11 -m pkg", PYTHON),
    ("slurm -- -m pkg --lr 0.1", PYTHON),
    ("slurm -- /opt/env/bin/python3 train.py", PYTHON),
    ("slurm -- numactl -m 0 python train.py", PYTHON),
    ("slurm -- uv run train.py", PYTHON),
    ("slurm --ranks-per-node 4 -- train.py", PYTHON),
    ("slurm", TRAINING),
    ("pbs -- --task digits", TRAINING),
    ("slurm -- ./a.out", ONE),
    ("pbs --nodes 2 --gpus-per-node 4 -- bash run.sh", ONE),
    ("slurm --ranks-per-node 1 -- ./a.out", ONE),
    ("slurm --ranks-per-node 4 -- ./a.out", SRUN),
    ("slurm --nodes 2 --ranks-per-node 1 -- ./a.out", SRUN),
    ("slurm --directive=--ntasks-per-node=4 --gpus-per-node 4 -- ./a.out", SRUN),
    ("pbs --ranks-per-node 4 -- ./a.out", MPIRUN),
    ("pbs --nodes 1x2+1x4 -- ./a.out", MPIRUN),
    ("pbs --directive '-l select=2:ncpus=8:mpiprocs=4' --accelerator cpu -- ./a.out", MPIRUN),
    ("local --ranks-per-node 2 -- ./a.out", MPIRUN),
    ("pbs --mpi mpich -- ./a.out", MPIRUN),
    ("slurm --site perlmutter --account x --constraint gpu -- train.py", "srun, that of site perlmutter"),
    ("pbs --site sophia --account x -- train.py", PYTHON),
]


@pytest.mark.parametrize(("command", "launcher"), CASES)
def test_a_note_says_which_launcher_and_why(command: str, launcher: str) -> None:
    words = shlex.split(command)
    done = jobgen(*words)
    assert (done.returncode, f"jobgen: note: the launcher is {launcher}\n" in done.stderr) == (0, True), done
    explained = " ".join(jobgen(words[0], "--explain", *words[1:]).stdout.split())
    assert explained.count("Program that starts the ranks.") == 1
    told = json.loads(jobgen(words[0], "--explain", "--json", *words[1:]).stdout)
    assert told["launcher"]["meaning"].endswith(f" Here the launcher is {launcher}.")


@pytest.mark.parametrize("program", ["train.py", "./a.out", "--task digits"])
def test_a_launcher_that_an_option_names_needs_no_note(program: str, tmp_path: Path) -> None:
    (tmp_path / program).touch()
    done = jobgen("slurm", "--launcher", "srun", "--", *program.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_launcher_as_the_program_is_refused() -> None:
    done = jobgen("slurm", "--", "torchrun", "--nproc-per-node", "4", "train.py")
    assert "use --launcher torchrun --ranks-per-node 4 -- train.py" in done.stderr


def test_each_step_has_the_launcher_of_its_program(tmp_path: Path) -> None:
    (tmp_path / "jobgen.toml").write_text(
        'scheduler = "slurm"\n'
        '[[step]]\ncommand = ["./prepare"]\n'
        '[[step]]\ncommand = ["train.py"]\n'
        '[[step]]\ncommand = ["./solve"]\nranks_per_node = 2\n'
        '[[step]]\ncommand = ["score.py"]\nlauncher = "srun"\n'
        "[resources]\ngpus_per_node = 4\n"
    )
    layer = read_job(str(tmp_path / "jobgen.toml"), (), ())
    plan = resolve(read_spec("slurm", {}, (), layer))
    assert [step.spec.launcher for step in plan.steps] == ["none", "torchrun", "srun", "srun"]
    note = jobgen("slurm", cwd=tmp_path).stderr
    assert "that of step 1 is none, that of step 2 is torchrun, that of step 3 is srun\n" in note
    chosen = resolve(read_spec("slurm", {"launcher": "srun"}, (), layer))
    assert [step.spec.launcher for step in chosen.steps] == ["srun"] * 4


def test_a_job_in_python_changes_its_launcher_with_its_program() -> None:
    spec = JobSpec("slurm", ["train.py"])
    assert (spec.launcher, spec.replace(program=["./a.out"]).launcher) == ("torchrun", "none")
