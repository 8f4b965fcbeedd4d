"""``--ranks N`` with a last node that has fewer: every rank finds the others.

Not on Torque: its pbs_sched puts both parts of such a request on one node if they fit there.
"""

from __future__ import annotations

import re

import pytest
from support import jobs
from support.cluster import Cluster
from support.pbs import PbsCluster
from support.story import finish, path_for

WHERE = 'echo "rank $RANK of $WORLD_SIZE, $LOCAL_WORLD_SIZE on $(hostname)"'


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["slurm", "slurm24", "openpbs"])
def test_the_nodes_of_three_ranks(request: pytest.FixtureRequest, kind: str) -> None:
    cluster: Cluster | PbsCluster = request.getfixturevalue(f"{kind}_cluster")
    folder = cluster.folder("ranks")
    (folder / "path.sh").write_text(f"export PATH={path_for('mpirun4', folder)}:$PATH\n")
    options = ("--ranks", "3", "--cpus-per-node", "2", "--accelerator", "cpu", "--launcher", "mpirun")
    script = jobs.render(
        *(*cluster.words, *options, "--no-preflight", "--source", folder / "path.sh"),
        program=["bash", "-c", WHERE],
    )
    job = finish(cluster, cluster.submit(script, folder))
    assert job.exit_code == 0, job.output
    seen = sorted(re.findall(r"rank (\d) of 3, (\d) on (\S+)", job.output))
    assert [(rank, local) for rank, local, _ in seen] == [("0", "2"), ("1", "2"), ("2", "1")]
    assert len({host for *_, host in seen}) == 2
