"""What jobs are made of, on the test cluster: cores of a node and of a rank."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster

WHERE = 'echo "rank $RANK: $(grep Cpus_allowed_list /proc/self/status) $OMP_NUM_THREADS"'
NODES = ("--nodes", "2", "--ranks-per-node", "2", "--accelerator", "cpu", "--no-preflight")


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "torchrun", "deepspeed"])
def test_a_step_uses_less_than_the_allocation_and_binds_its_ranks(
    slurm_cluster: Cluster, tmp_path: Path, launcher: str
) -> None:
    cores = ("--cpus-per-node", "8", "--cpus-per-rank", "1", "--cpu-bind", "1;0")
    script = jobs.render(
        *("slurm", *NODES, *cores, "--launcher", launcher, "--interface", "lo", "--setup", "export A=1"),
        *("--before", 'scontrol show job "$SLURM_JOB_ID"; [[ $A == 1 ]]'),
        program=["bash", "-c", WHERE],
    )
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert re.search(r"\bNumCPUs=16\b", job.output)
    seen = set(re.findall(r"rank (\d): Cpus_allowed_list:\t(\d+) (\d+)", job.output))
    assert seen == {("0", "1", "1"), ("1", "0", "1"), ("2", "1", "1"), ("3", "0", "1")}
