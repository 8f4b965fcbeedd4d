"""Restart in place: ranks and nodes die at random moments, and the job goes on in its allocation.

JOBGEN_RESTARTS=all plays every cell, with JOBGEN_SEED; each prints the seconds from a death to the next step.
"""

from __future__ import annotations

import os
import random

import pytest
from support import jobs
from support.cluster import Cluster, ended
from support.pbs import PbsCluster
from support.processes import gone
from support.require import need_package
from support.restarts import PAIR, TRAINING, Story, trained, weights
from support.waiting import wait_for

pytestmark = pytest.mark.timeout(900)

SEED = int(os.environ.get("JOBGEN_SEED", random.SystemRandom().randrange(10**6)))
LAUNCHERS = {
    "torchrun": ("--launcher", "torchrun"),
    "mpirun4": ("--launcher", "mpirun"),
    "mpirun5": ("--launcher", "mpirun"),
    "mpich": ("--launcher", "mpirun", "--mpi", "mpich"),
    "srun": ("--launcher", "srun"),
    "deepspeed": ("--launcher", "deepspeed"),
    "pdsh": ("--launcher", "deepspeed", "--remote", "ssh"),
    "accelerate": ("--launcher", "accelerate"),
    "colossalai": ("--launcher", "colossalai"),
    "ssh": ("--launcher", "torchrun", "--remote", "ssh"),
}
ALL = os.environ.get("JOBGEN_RESTARTS") == "all"
MANY = ("rank", "rank", "node", "rank", "rank")
SOME = ("rank", "node", "rank")
CELLS = [("slurm", "torchrun", ("rank", "node"))]
if ALL:
    CELLS = [("slurm", launcher, MANY) for launcher in ("torchrun", "mpirun4", "mpirun5") for _ in range(4)]
    CELLS += [
        ("slurm", launcher, SOME)
        for launcher in sorted(LAUNCHERS.keys() - {"torchrun", "mpirun4", "mpirun5"})
    ]
    CELLS += [
        (scheduler, launcher, SOME)
        for scheduler in ("slurm24", "openpbs", "torque")
        for launcher in ("torchrun", "mpirun4", "mpirun5", "mpich", "deepspeed", "accelerate")
    ]


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    need_package("torch", "safetensors", "mpi4py")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of a run without deaths."""
    place = tmp_path_factory.mktemp("undisturbed") / "run"
    place.mkdir()
    trained(TRAINING, place, ranks=2)
    return weights(place)


@pytest.mark.parametrize(("scheduler", "launcher", "acts"), CELLS)
def test_ranks_and_nodes_die(
    request: pytest.FixtureRequest, undisturbed: bytes, scheduler: str, launcher: str, acts: tuple[str, ...]
) -> None:
    cluster: Cluster | PbsCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder(f"restarts-{launcher}")
    options = (*LAUNCHERS[launcher], "--restarts", len(acts), "--spare-nodes", "1", "--walltime", "20m")
    story = Story(cluster, folder, options, random.Random(f"{SEED}{request.node.name}"))
    print(f"seed {SEED}, {folder}")
    job = story.play(launcher, acts)
    print(*story.restarts, sep="\n")
    assert job.ok, job.output
    assert not story.left
    assert not gone(folder)
    assert len(list(story.run.glob("attempt-*"))) == len(acts) + 1
    assert jobs.status_of(story.run)["state"] == "finished"
    lost = "".join(f"{host}\tdoes not answer\n" for host in story.dead)
    assert (story.run / "bad-hosts").read_text() == lost if lost else not (story.run / "bad-hosts").exists()
    assert weights(story.run) == undisturbed


@pytest.mark.skipif(not ALL, reason="it waits for minutes")
@pytest.mark.parametrize("acts", [("rank", "rank"), ("node",)] * 3)
def test_through_the_queue(slurm_cluster: Cluster, undisturbed: bytes, acts: tuple[str, ...]) -> None:
    """No restart is left for the last death: the scheduler starts the job again."""
    folder = slurm_cluster.folder("queue")
    options = (*LAUNCHERS["torchrun"], "--requeue", "1", "--no-preflight", "--walltime", "30m")
    if len(acts) > 1:
        options += ("--restarts", str(len(acts) - 1))
    story = Story(slurm_cluster, folder, options, random.Random(SEED), patience=900)
    job = story.play("torchrun", acts)
    print(folder, *story.restarts, sep="\n")
    assert job.ok, job.output
    assert not story.left
    assert not gone(folder)
    assert weights(story.run) == undisturbed


def test_fewer_nodes(slurm_cluster: Cluster) -> None:
    """A program that waits for its lost rank goes on without it."""
    folder = slurm_cluster.folder("fewer")
    program = (
        'touch "$JOBGEN_RUN_DIR/up-$JOBGEN_ATTEMPT-$RANK-$WORLD_SIZE"; ((JOBGEN_ATTEMPT > 1)) || sleep 300'
    )
    options = ("--launcher", "mpirun", "--restarts", "2", "--min-nodes", "1", "--no-preflight")
    script = jobs.render("slurm", *PAIR, *options, program=["bash", "-c", program])
    job = slurm_cluster.sbatch(script, folder)
    wait_for(lambda: len(list(folder.glob("runs/*/up-1-?-2"))) == 2)
    slurm_cluster.kill("node2")
    try:
        wait_for(lambda: list(folder.glob("runs/*/up-2-0-1")))
    finally:
        slurm_cluster.revive("node2")
    done = ended(slurm_cluster, job)
    assert done.ok, done.output
    assert "excluding node2: lost" in done.output
    assert not gone(folder)
