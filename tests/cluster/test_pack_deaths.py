"""Packed arrays in which ranks and nodes die: which points fail, which go on, and what runs again.

JOBGEN_RESTARTS=all also takes the power of nodes of OpenPBS and Torque away, which other tests share.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from support.packs import begun, jobgen, state, tasks_of
from support.processes import gone
from support.story import AnyCluster, finish, path_for
from support.waiting import wait_for

pytestmark = pytest.mark.timeout(900)

BEGIN = 'echo "$JOBGEN_TASK" >> begun; hostname -s > "$JOBGEN_RUN_DIR/host-$JOBGEN_ATTEMPT"\n'
ONE_DIES = BEGIN + "case $JOBGEN_TASK-$JOBGEN_ATTEMPT in 1-1) kill -9 $$ ;; 2-*) exit 3 ;; *) sleep 4 ;; esac"
NODE_DIES = BEGIN + "for ((i = 0; i < 6000; i++)); do [[ ! -e go ]] || exit 0; sleep 0.1; done"
ALL = os.environ.get("JOBGEN_RESTARTS") == "all"


def submitted(cluster: AnyCluster, launcher: str, program: str, *options: object) -> tuple[Path, str]:
    """Submit four points, of one rank each, and return the folder and the task of all."""
    folder = cluster.folder(f"pack-{launcher}")
    folder.chmod(0o777)
    (folder / "path.sh").write_text(
        f"export PATH={path_for(launcher, folder)}:$PATH OMPI_MCA_orte_tmpdir_base={folder}\n"
    )
    of_mpi = ("mpirun", "--mpi", "mpich") if launcher == "mpich" else (launcher.rstrip("45"),)
    words = (
        *("--array", "0-3", "--pack", "4", "--accelerator", "cpu", "--cpus-per-rank", "1"),
        *("--launcher", *of_mpi, "--no-preflight", "--source", folder / "path.sh", "--name", "exp"),
        *("--walltime", "15m", *options),
    )
    program_words = ("--", "bash", "-c", program)
    array = jobgen(cluster, folder, "submit", *cluster.words, *words, *program_words).strip()
    return folder, tasks_of(array, 1)[0]


CELLS = [
    *(("slurm", launcher) for launcher in ("torchrun", "deepspeed", "accelerate", "mpich", "srun")),
    ("openpbs", "accelerate"),
    ("torque", "mpich"),
]


@pytest.mark.parametrize(("name", "launcher"), CELLS)
def test_a_point_restarts_in_place_and_the_others_go_on(
    request: pytest.FixtureRequest, name: str, launcher: str
) -> None:
    cluster: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    folder, task = submitted(cluster, launcher, ONE_DIES, "--ranks-per-node", "4", "--restarts", "2")
    done = finish(cluster, task)
    assert done.exit_code == 3, done.output
    assert "3 of 4 points have finished, 1 failed: 2" in done.output
    assert begun(folder) == Counter({0: 1, 1: 2, 2: 2, 3: 1})
    [run] = (folder / "runs").iterdir()
    log = (run / "task-1/log").read_text()
    assert "failed first, with status 137" in log
    assert "restart 1 of 2, attempt 2" in log
    assert "the program failed with status 3 again" in (run / "task-2/log").read_text()
    assert state(cluster, folder, run.name)["tasks"] == {"finished": 3, "failed": 1}
    assert not gone(folder, 30)


NODES = [("slurm", "srun", ()), ("slurm", "torchrun", ("--restarts", "1"))]
if ALL:
    NODES += [("openpbs", "torchrun", ()), ("torque", "mpirun", ())]


@pytest.mark.parametrize(("name", "launcher", "options"), NODES)
def test_a_node_is_lost(
    request: pytest.FixtureRequest, name: str, launcher: str, options: tuple[str, ...]
) -> None:
    """Two points on the first node, where the script runs, go on; those on the other one run again later."""
    cluster: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    sizes = ("--nodes", "2", "--ranks-per-node", "2")
    folder, task = submitted(cluster, launcher, NODE_DIES, *sizes, *options)
    wait_for(lambda: (folder / "begun").exists() and begun(folder) == Counter(range(4)), 180)
    [run] = (folder / "runs").iterdir()
    hosts = [(run / f"task-{point}/host-1").read_text().strip() for point in range(4)]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    begin = time.monotonic()
    cluster.kill(hosts[2])
    try:
        events = [run / f"task-{point}/attempt-1/events" for point in (2, 3)]
        wait_for(lambda: all(" ended " in one.read_text() for one in events), 400)
        print(f"{name} {launcher}: after {time.monotonic() - begin:.0f} s, load {os.getloadavg()[0]:.0f}")
        (folder / "go").touch()
        end = run / "pack-0/attempt-1/events"
        wait_for(lambda: " ended " in end.read_text(), 60)
    finally:
        cluster.revive(hosts[2])
    done = finish(cluster, task)
    assert "2 of 4 points have finished, 2 failed: 2 3" in done.output, done.output
    assert {line.split("\t")[0] for line in (run / "pack-0/bad-hosts").read_text().splitlines()} == {hosts[2]}
    assert not gone(folder, 60)
    array = jobgen(cluster, folder, "submit", "--again", run.name).strip()
    assert finish(cluster, tasks_of(array, 1)[0]).ok
    assert begun(folder) == Counter([0, 1, 2, 3, 2, 3])
    assert state(cluster, folder, run.name)["tasks"] == {"finished": 4}
    assert not gone(folder, 30)
