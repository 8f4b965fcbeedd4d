"""What the request of a script leaves open: cores of whole nodes, threads, arrays of the submission, modes of logs."""

from __future__ import annotations

import pytest
from convert.conversions import convert, job_file, remarks

HEAD = "#!/bin/bash\n#SBATCH --time=10\n#SBATCH "


def reasons(script: str, target: str = "torque") -> list[str]:
    done = job_file(script) if target == "toml" else convert(script, target)
    return [one.why for one in done.remarks]


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("--nodes=2 -C haswell", "./ips.py", 1),
        ("-N 4", "srun ./a", 1),
        ("-N 1", "./a", 0),
        ("-N 2 -n 8", "srun ./a", 0),
        ("-N 2 --ntasks-per-node=1", "./a", 0),
        ("-N 2 -c 16", "./a", 0),
        ("-N 2 --gres=gpu:4", "./a", 0),
        ("-N 2 --exclusive", "./a", 0),
        ("-N 2", "srun -n 64 ./a", 0),
    ],
)
@pytest.mark.parametrize("target", ["pbspro", "torque"])
def test_nodes_without_cores(target: str, options: str, code: str, count: int) -> None:
    found = [one for one in reasons(f"{HEAD}{options}\n{code}\n", target) if one.startswith("names no cores")]
    assert len(found) == count


@pytest.mark.parametrize(
    ("options", "code", "count"),
    [
        ("-n 1", "unset OMP_NUM_THREADS\npython a.py", 1),
        ("-n 1", "if true; then\nunset A OMP_NUM_THREADS\nfi\n./a", 1),
        ("-n 1", "python a.py", 0),
        ("-n 1 --exclusive", "unset OMP_NUM_THREADS\npython a.py", 0),
    ],
)
def test_a_script_that_unsets_the_threads(options: str, code: str, count: int) -> None:
    found = reasons(f"{HEAD}{options}\n{code}\n", "pbspro")
    assert len([one for one in found if one.startswith("is unset: unless PBS Pro binds")]) == count


def test_an_array_that_only_the_log_names() -> None:
    log = reasons(f"{HEAD}-o x_%A_%a.out\n./a\n", "pbspro")
    assert (
        "no directive has the range of the array: if the submission makes one, submit with qsub -J FIRST-LAST"
        in log
    )
    code = reasons(f"{HEAD}-n 1\n./a $SLURM_ARRAY_TASK_ID\n", "pbspro")
    assert "no directive has the range of the array: submit with qsub -J FIRST-LAST" in code


@pytest.mark.parametrize(("mode", "sign"), [("append", ">>"), ("truncate", ">")])
def test_the_mode_of_a_log_that_the_script_opens(mode: str, sign: str) -> None:
    done = convert(f"{HEAD}-o x-%j.out --open-mode={mode}\n./a\n", "pbspro")
    assert f'exec {sign} "x-${{PBS_JOBID%%[!0-9]*}}.out"' in done.text
    assert not [one for _, _, one in remarks(done) if "open-mode" in one]


def test_the_log_of_the_last_of_two_options() -> None:
    done = job_file(f"{HEAD}-o out%j.log\n#SBATCH --output=starting.out\n./a\n")
    assert [one for _, _, one in remarks(done) if "output" in one] == ["--output starting.out"]


@pytest.mark.parametrize(("shell", "count"), [("ksh", 0), ("zsh", 1)])
def test_a_shell_that_splits_words_as_bash(shell: str, count: int) -> None:
    found = reasons(f"#!/bin/{shell}\n#SBATCH --time=10\n./a\n", "toml")
    assert len([one for one in found if "splits words" in one]) == count
    assert any(one.startswith("the job runs the commands in bash") for one in found)


@pytest.mark.parametrize(
    ("shell", "line", "count"),
    [
        ("sh", ". /etc/profile.d/rec_modules.sh\nmodule load a", 0),
        ("bash", ". /etc/profile.d/rec_modules.sh\nmodule load a", 1),
        ("sh", "source /etc/profile.d/rec_modules.sh\nmodule load a", 1),
    ],
)
def test_a_file_that_cannot_be_read(shell: str, line: str, count: int) -> None:
    found = reasons(f"#!/bin/{shell}\n#SBATCH --time=10\n{line}\n./a\n", "toml")
    assert len([one for one in found if one.startswith("if the file cannot be read")]) == count


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("--hostfile hf", 1),
        ("-machinefile hf", 1),
        ("-np 4 --hostfile hf", 0),
        ("--hostfile $PBS_NODEFILE", 0),
    ],
)
def test_ranks_that_a_file_of_hosts_counts(words: str, count: int) -> None:
    head = "#!/bin/bash\n#PBS -l select=2:ncpus=8:mpiprocs=8 -l walltime=1:00:00\n"
    found = reasons(f"{head}tail -n +5 $PBS_NODEFILE > hf\nmpirun {words} ./a\n", "slurm")
    assert len([one for one in found if "a rank for each line of the file" in one]) == count
