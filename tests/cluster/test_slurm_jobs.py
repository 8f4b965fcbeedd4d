"""Rendered Slurm scripts, submitted with sbatch to the test cluster: what each rank saw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster, Job
from support.jobs import ENVIRONMENT, HOSTILE, PROBE

TWO_BY_TWO = ("--nodes", "2", "--ranks-per-node", "2", "--accelerator", "cpu", "--cpus-per-rank", "3")
PLAIN = "runs"
ODD = 'it\'s a "run" $(touch canary)'

# Name: the options, whether directories may hold any character, whether mpirun is Debian's.
LAUNCHES = {
    "srun": (["--launcher", "srun"], True, False),
    "mpirun": (["--launcher", "mpirun"], True, False),
    "mpirun-debian": (["--launcher", "mpirun"], True, True),
    "mpirun-ssh": (["--launcher", "mpirun", "--remote", "ssh"], True, False),
    "mpirun-ssh-debian": (["--launcher", "mpirun", "--remote", "ssh"], True, True),
    "torchrun": (["--launcher", "torchrun"], True, False),
    "torchrun-ssh": (["--launcher", "torchrun", "--remote", "ssh"], True, False),
    "deepspeed": (["--launcher", "deepspeed"], True, False),
    "deepspeed-scheduler": (["--launcher", "deepspeed", "--remote", "scheduler"], True, False),
    "deepspeed-pdsh": (["--launcher", "deepspeed", "--remote", "ssh"], False, False),
}


def submit(
    cluster: Cluster, directory: Path, script: str, *args: str, env: Mapping[str, str] | None = None
) -> Job:
    return cluster.wait(cluster.sbatch(script, directory, *args, env=env))


def probing(directory: Path, act: str = "") -> list[str]:
    """Options that tell the probe where to write, which is ``directory``/seen."""
    (directory / "seen").mkdir(exist_ok=True)
    return jobs.env_options({"PROBE_DIR": directory / "seen", "PROBE_ACT": act})


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_rank_knows_its_place_and_gets_all_that_was_given(
    slurm_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    options, any_directory, debian = LAUNCHES[name]
    workdir = tmp_path / (ODD if any_directory else "work")
    runs = workdir / (ODD if any_directory else "runs")
    runs.mkdir(parents=True)
    carried = {
        "PYTHONPATH": f"/a b/$(touch {jobs.CANARY})/%h",
        "LD_LIBRARY_PATH": f'/"x`touch {jobs.CANARY}`',
    }
    path = jobs.debian_path(tmp_path / "bin") if debian else slurm_cluster.env["PATH"]
    carried["PATH"] = f"{path}:/a b/$(touch {jobs.CANARY})/%h"
    script = jobs.render(
        *("slurm", *TWO_BY_TWO, *options, "--workdir", workdir, "--run-dir", runs.name),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = submit(slurm_cluster, tmp_path, script, env=carried)
    assert job.ok, job.output
    directory = jobs.run_dir(runs)
    hosts = jobs.hosts_in(directory)
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert [slots for _, slots in hosts] == [2, 2]
    jobs.check_world(ranks, [host for host, _ in hosts], 2)
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, **carried, "OMP_NUM_THREADS": "3"}, workdir)
    jobs.check_untouched(tmp_path, workdir, runs, slurm_cluster.home, Path("/"))
    jobs.check_files(directory)
    assert str(directory) in job.output
    assert re.search(rf"job {job.id} finished after \d+ s", job.output)
