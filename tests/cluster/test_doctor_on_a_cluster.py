"""``jobgen doctor`` beside a real Slurm, on the head and inside a job, and completion beside each scheduler."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cluster import Cluster
from support.require import need_package
from support.story import AnyCluster

DOCTOR = (sys.executable, "-m", "jobgen", "doctor", "--json")


def by_check(text: str) -> dict[str, Any]:
    return {one["check"]: one for one in json.loads(text)["findings"]}


def test_the_head_of_a_slurm_cluster(slurm_cluster: Cluster, tmp_path: Path) -> None:
    done = slurm_cluster.exec(
        "head", [*DOCTOR, "--accelerator", "cpu", "--", "true"], cwd=tmp_path, env=slurm_cluster.env
    )
    said = json.loads(done.stdout)
    assert (said["scheduler"], said["in_job"]) == ("slurm", False)
    assert by_check(done.stdout)["scheduler"]["found"].startswith("Slurm: slurm")


def test_inside_a_job_a_missing_gpu_is_a_problem(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """The nodes have GPUs for Slurm alone; torch is a build for CPUs, or sees none."""
    need_package("torch", "mpi4py")
    words = " ".join([*DOCTOR, "slurm", "--launcher", "mpirun", "--nodes", "1"])
    script = f"#!/bin/bash\n#SBATCH --ntasks=2 --gpus-per-node=1\n{words} > said.json\necho status $?\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    text = (tmp_path / "said.json").read_text()
    assert json.loads(text)["in_job"] is True
    found = by_check(text)
    assert {found[check]["state"] for check in ("torch", "GPUs") if check in found} >= {"problem"}
    assert found["mpi4py"]["state"] == "ok", found["mpi4py"]
    assert "status 1" in job.output


@pytest.mark.parametrize(
    ("name", "queues"), [("slurm", ["gpu", "cpu"]), ("openpbs", ["workq"]), ("torque", ["batch"])]
)
def test_completion_knows_the_queues_of_the_scheduler(
    request: pytest.FixtureRequest, name: str, queues: list[str]
) -> None:
    """From the real sinfo or qstat."""
    cluster: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    words = [sys.executable, "-m", "jobgen", cluster.words[0], "--queue", ""]
    done = cluster.exec("head", words, env={"_JOBGEN_COMPLETE": "bash"})
    assert set(done.stdout.split()) >= set(queues)
