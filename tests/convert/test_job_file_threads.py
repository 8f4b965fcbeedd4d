"""Job files: the threads of programs that a launcher starts before the program of the job."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks

SLURM = "#!/bin/bash\n#SBATCH -N 1 --ntasks-per-node=4 -t 10\n"
PBS = "#!/bin/bash\n#PBS -l select=1:ncpus=4:mpiprocs=4\n"
BEFORE = "mpirun -np 2 ./a\nsource env.sh\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{SLURM}{BEFORE}srun ./c", [3]),
        (f"{SLURM}mpirun -np 2 ./b\n{BEFORE}srun ./c", [3]),
        (f"{SLURM}export OMP_NUM_THREADS=3\n{BEFORE}srun ./c", []),
        (f"{SLURM}srun hostname\nsource env.sh\nsrun ./c", []),
        (f"{SLURM}srun ./c", []),
        (f"{PBS}{BEFORE}mpirun ./c", []),
    ],
)
def test_a_launcher_in_setup_may_get_threads_of_the_scheduler(text: str, lines: list[int]) -> None:
    done = job_file(f"{text}\n")
    found = [one.line for one in done.remarks if "is in setup, where PBS Pro sets" in one.why]
    assert found == lines, remarks(done)
