"""What jobs are made of, on the test cluster: cores of a node and of a rank; containers (stand-ins)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support import boxes, jobs
from support.cluster import Cluster

pytestmark = pytest.mark.usefixtures("warm_python")

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


IN_IT = {
    "pyxis-srun": ("pyxis", ["--launcher", "srun"]),
    "pyxis-torchrun": ("pyxis", ["--launcher", "torchrun", "--preflight"]),
    "edf-srun": ("edf", ["--launcher", "srun"]),
    "edf-torchrun": ("edf", ["--launcher", "torchrun", "--preflight"]),
    "apptainer-srun": ("apptainer", ["--launcher", "srun", "--preflight"]),
    "apptainer-mpirun": ("apptainer", ["--launcher", "mpirun", "--preflight"]),
    "enroot-deepspeed": ("enroot", ["--launcher", "deepspeed"]),
    "enroot-torchrun-ssh": ("enroot", ["--launcher", "torchrun", "--remote", "ssh"]),
}


@pytest.mark.parametrize("name", IN_IT)
def test_ranks_of_two_nodes_are_in_containers(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    kind, options = IN_IT[name]
    image = boxes.image(tmp_path)
    (tmp_path / "it.toml").write_text(f'image = "{image}"\n')
    named = "./it.toml" if kind == "edf" else image
    path = boxes.stand_ins(tmp_path / "bin", "srun" if kind in ("pyxis", "edf") else kind)
    script = jobs.render(
        *(
            "slurm",
            "--nodes",
            "2",
            "--ranks-per-node",
            "2",
            "--accelerator",
            "cpu",
            "--no-preflight",
            *options,
        ),
        *("--container", kind, "--image", named, *boxes.binds(), "--env", "WORD=a 'b'"),
        program=["bash", "-c", 'echo "rank $RANK of $WORLD_SIZE on $(hostname): $(cat /mark) $PWD $WORD"'],
    )
    here = f"{path}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, env={"PATH": here}), timeout=90)
    assert job.ok, job.output
    seen = re.findall(r"rank (\d) of 4 on (\S+): in the container (\S+) a 'b'", job.output)
    hosts = [host for host, _ in jobs.hosts_in(jobs.run_dir(tmp_path / "runs")) for _ in "ab"]
    assert sorted(set(seen)) == [(str(rank), host, str(tmp_path)) for rank, host in enumerate(hosts)]
