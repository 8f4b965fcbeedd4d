"""Many jobs with Debian's Open MPI 4, of which one in four once hung under OpenPBS: mpirun and its daemons were all
there, and waited. JOBGEN_HANGS is how many (`make hangs`: 50)."""

from __future__ import annotations

import os

import pytest
from support.processes import gone
from support.story import RANKS, AnyCluster, finish, script_of, seen

JOBS = int(os.environ.get("JOBGEN_HANGS", "8"))


@pytest.mark.timeout(60 * JOBS)
@pytest.mark.parametrize("name", ["slurm", "openpbs", "torque"])
def test_no_job_hangs(request: pytest.FixtureRequest, name: str) -> None:
    """As many side by side as the nodes take."""
    cluster: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    folders = [cluster.folder("hangs") for _ in range(JOBS)]
    begun = [
        cluster.submit(script_of(cluster, folder, "mpirun4", "well", "--walltime", "5m"), folder)
        for folder in folders
    ]
    ended = [finish(cluster, job) for job in begun]
    assert [job.exit_code for job in ended] == [0] * JOBS, [job for job in ended if not job.ok]
    assert [len(seen(folder, "began")) for folder in folders] == [RANKS] * JOBS
    assert [gone(folder) for folder in folders] == [[]] * JOBS
