"""Job files: a remark on a directive has the line of the directive."""

from __future__ import annotations

import pytest
from convert.conversions import job_file, remarks


@pytest.mark.parametrize(
    ("directives", "program", "line", "what"),
    [
        ("#SBATCH -t 10\n#SBATCH -N 3\n#SBATCH -n 8\n", "mpirun ./a", 4, "8 tasks"),
        ("#SBATCH -t 10\n#SBATCH -n 8\n#SBATCH -G 3\n", "srun ./a", 4, "3 GPUs"),
        ("#SBATCH -t 10\n#SBATCH -n 8\n", "srun ./a", 3, "8 tasks"),
        ("#SBATCH -t 10\n#SBATCH -n 8\n", "./a", 3, "8 tasks"),
        ("#SBATCH -t 10\n#SBATCH -n 2\n#SBATCH --gpus-per-task=1\n", "srun ./a", 4, "1 GPU for each task"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 1\n#SBATCH --gres=gpu:a100:1\n", "srun ./a", 4, "a100"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 1\n", "srun -c 2 ./a", 4, "2 cores of a rank"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 4 -c 1\n", "S='srun -c 2'\n$S ./a", 5, "2 cores of a rank"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 1\n#SBATCH --exclusive\n", "srun ./a", 4, "exclusive"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 1\n#SBATCH -J a/b\n", "srun ./a", 4, "the name a/b"),
        ("#SBATCH -t 10\n#SBATCH -N 1 -n 1\n#SBATCH -D ~/x\n", "srun ./a", 4, "workdir ~/x"),
        ("#PBS -N x\n#PBS -l select=1:ncpus=4:mpiprocs=4:ngpus=2\n", "mpirun ./a", 3, "2 GPUs of 4 ranks"),
        ("#PBS -N x\n#PBS -l select=1:ncpus=7:mpiprocs=4\n", "mpirun ./a", 3, "OMP_NUM_THREADS"),
    ],
)
def test_a_remark_on_a_directive_has_its_line(directives: str, program: str, line: int, what: str) -> None:
    done = job_file(f"#!/bin/bash\n{directives}{program}\n")
    assert {one.line for one in done.remarks if one.what == what} == {line}, remarks(done)
