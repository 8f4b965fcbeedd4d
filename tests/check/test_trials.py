"""Which jobs are short trials, in which a fault costs little."""

from __future__ import annotations

import pytest

from jobgen.check.checker import check
from jobgen.check.trials import is_trial
from jobgen.script.script import Script

GPU = "#SBATCH --gres=gpu:1\n"


def trial(body: str, name: str = "job.sh", folder: str = "/data/net/scripts") -> bool:
    return is_trial(Script(f"#!/bin/bash\n{body}\n".encode(), "slurm", folder, name=name))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{GPU}python3 train.py", False),
        # Half an hour of a node
        ("#SBATCH --time=00:30:00\npython3 train.py", True),
        ("#SBATCH --time=00:31:00\npython3 train.py", False),
        ("#SBATCH --time=00:30:00 --nodes=2\nsrun ./a", False),
        ("#SBATCH --time=00:30:00 --array=1-9\n./a", False),
        # Names of the job and its queue
        (f"{GPU}#SBATCH --job-name=gpu_test\nsrun ./a", True),
        (f"{GPU}#SBATCH --job-name=latest\nsrun ./a", False),
        (f"{GPU}#SBATCH --job-name=a_visualization\nsrun ./a", True),
        (f"{GPU}#SBATCH --job-name=test --time=24:00:00\nsrun ./a", False),
        (f"{GPU}#SBATCH --partition=gputest\nsrun ./a", True),
        (f"{GPU}#SBATCH --qos=debug\nsrun ./a", True),
        # Programs
        (f"{GPU}srun nvidia-smi", True),
        (f"{GPU}mpirun /opt/nccl-tests/build/all_reduce_perf -b 1G", True),
        (f"{GPU}python3 order.py\nsrun bash -c '/opt/all_reduce_perf -b 1G'", True),
        (f"{GPU}gmx mdrun -nsteps 100000 -resetstep 90000 -noconfout", True),
        (f"{GPU}apptainer run a.sif cp -r /in .\napptainer run a.sif namd3 stmv/stmv.namd +p64", True),
        (f"{GPU}singularity run hpl.sif mpirun_rochpl -P 1 -Q 1", True),
        (f"{GPU}srun python3 tf_cnn_benchmarks.py", True),
        (f"{GPU}srun python3 tf_cnn_benchmarks.py\nsrun python3 train.py", False),
        (f"{GPU}deepspeed run.py data.benchmark=glue", False),
        (f"{GPU}python3 train.py --data /data/benchmark/glue", False),
        (f"{GPU}srun ctest -L RANK_2", True),
        (f"{GPU}srun python3 -c 'import torch; print(torch.rand(5).cuda())'", True),
        (f"{GPU}srun python3 -c 'import a; a.run()'", False),
    ],
)
def test_a_trial_by_its_job(body: str, expected: bool) -> None:
    assert trial(body) is expected


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [
        ("beginner.sh", "/data/net/scripts", True),
        ("test_model.sh", "/data/net/scripts", True),
        ("contest.sh", "/data/net/scripts", False),
        ("job.sh", "/data/net/tests", True),
        ("job.sh", "/data/net/unit-tests/gpu", True),
        ("job.sh", "/data/tests/net/scripts", False),
        ("job.sh", "/data/Tutorial-2/lab", True),
        ("job.sh", "/data/site-benchmark/solver/case/256", True),
        ("job.sh", "/data/net/.ci", True),
        ("job.sh", "/data/net/examples", True),
        ("pretrain.sh", "/data/net/examples", False),
        ("job.sh", "/data/net/examples/finetune", False),
        ("job.sh", "/data/benchmarking-and-training-of-nets/scripts", False),
    ],
)
def test_a_trial_by_its_path(name: str, folder: str, expected: bool) -> None:
    assert trial(f"{GPU}srun ./a", name, folder) is expected


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("bare-wait", "srun ./a &\nsrun ./b &\nwait"),
        ("lost-status", "set -e\nsrun ./a | tee log"),
        ("no-errexit", "srun ./a\ndate"),
        ("no-walltime", "srun ./train"),
        ("sleep-as-sync", "./server &\nsleep 5\nsrun ./client"),
        ("output-directory", "#SBATCH --output=out/a.log\nmkdir -p out\nsrun ./a"),
        ("shared-hostfile", "srun hostname > hostfile\nmpirun --hostfile hostfile ./a"),
    ],
)
def test_a_warning_is_a_note_in_a_trial(rule: str, lines: str) -> None:
    for name, level in (("job", "warning"), ("test", "note")):
        text = f"#!/bin/bash\n{GPU}#SBATCH --job-name={name}\n{lines}\n"
        found = check(text.encode(), folder="/data/net")
        assert [one.severity for one in found if one.rule == rule] == [level]
