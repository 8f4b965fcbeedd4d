"""Many jobs with Open MPI 4, of which one in four once hung under OpenPBS, and 5: mpirun and its daemons were all
there, and waited. JOBGEN_HANGS is how many of each (`make hangs`: 50)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster
from support.matrix import Cell
from support.processes import gone
from support.story import TWO_NODES, AnyCluster, finish, script_of, seen

JOBS = int(os.environ.get("JOBGEN_HANGS", "4"))


@pytest.mark.timeout(120 * JOBS)
@pytest.mark.parametrize("name", ["slurm", "openpbs", "torque"])
def test_no_job_hangs(request: pytest.FixtureRequest, name: str) -> None:
    """As many side by side as the nodes take."""
    cluster: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    cells = [Cell(name, launcher, "well") for launcher in ("mpirun4", "mpirun5")] * JOBS
    folders = [cluster.folder("hangs") for _ in cells]
    begun = [
        cluster.submit(script_of(cluster, folder, cell, "well", "--walltime", "5m"), folder)
        for folder, cell in zip(folders, cells, strict=True)
    ]
    ended = [finish(cluster, job) for job in begun]
    assert [job.exit_code for job in ended] == [0] * len(begun), [job for job in ended if not job.ok]
    assert [len(seen(folder, "began")) for folder in folders] == [cell.ranks for cell in cells]
    assert [gone(folder) for folder in folders] == [[]] * len(begun)


def test_an_mpirun_that_does_not_end_after_its_last_rank(slurm_cluster: Cluster, tmp_path: Path) -> None:
    bin = Path(sys.executable).parent
    mpirun = f'{bin}/mpirun "$@"; [[ $1 == --version ]] || exec sleep 1000'
    path = f"{jobs.path_with(tmp_path / 'bin', mpirun=mpirun)}:{bin}:/usr/local/bin:/usr/bin:/bin"
    script = jobs.render(
        "slurm",
        *(*TWO_NODES, "--ranks-per-node", "2"),
        "--no-preflight",
        "--launcher",
        "mpirun",
        program=["bash", "-c", "echo rank $RANK"],
    )
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, env={"PATH": path}))
    assert job.ok, job.output
    assert "mpirun was ended by a signal after every rank had ended with status 0" in job.output
