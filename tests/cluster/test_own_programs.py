"""The programs of docs/own-programs.md in jobs of two nodes: asked to leave, queued again, and at the end with the
weights of a run that was never stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import jobs, programs, warm
from support.cluster import Cluster, start_now
from support.require import need_package
from support.story import AnyCluster

from jobgen.runs import node_files

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("own-programs")
TWO = ("--nodes", "2", "--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1")


def submit(cluster: AnyCluster, folder: Path, program: Path) -> str:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    words = ("--launcher", "srun" if cluster.name == "slurm" else "mpirun", "--venv", sys.prefix)
    more = ("--no-preflight", "--requeue", "2", "--walltime", "15m", "--env", f"PYTHONPATH={paths}")
    script = jobs.render(*cluster.words, *TWO, *words, *more, program=[program.name])
    return cluster.submit(script, folder)


def whole(folder: Path, name: str) -> bytes:
    """The weights of two ranks on this machine that are not stopped."""
    program = programs.write(folder, name)
    env = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "JOBGEN_RUN_DIR": str(folder)}
    env |= {"HOME": str(folder), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    status, out, err = warm.run([str(program)], env, folder, 2, lambda: warm.nursery(modules=warm.TRAINING))
    assert status == 0, out + err
    return programs.weights(folder)


def until(condition: Callable[[], object], cluster: AnyCluster, job: str) -> None:
    """Wait until it holds; an attempt of Slurm is saved the pause before it."""
    limit = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < limit, cluster.wait(job, 1)
        if isinstance(cluster, Cluster) and cluster.facts(job)["Reason"] == "BeginTime":
            start_now(cluster, job)
        time.sleep(0.2)


def has_ended(attempt: Path) -> bool:
    events = attempt / "events"
    return events.exists() and " ended " in events.read_text()


@pytest.mark.parametrize("name", programs.NEEDS)
@pytest.mark.parametrize("scheduler", ["slurm", "openpbs"])
def test_stopped_and_queued_again_it_ends_with_the_same_weights(
    request: pytest.FixtureRequest, scheduler: str, name: str, tmp_path: Path
) -> None:
    need_package("torch", "mpi4py", *programs.NEEDS[name])
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder(name)
    job = submit(cluster, folder, programs.write(folder, name, pause=0.01))
    until(lambda: list(folder.glob("runs/*/saved-step")), cluster, job)
    run = jobs.run_dir(folder / "runs")
    with (run / "attempt-1" / "control").open("a") as control:
        control.write("save test\n")
    until(lambda: has_ended(run / "attempt-2"), cluster, job)
    statuses = [[rank.status for rank in node_files.ranks(run / f"attempt-{number}")] for number in (1, 2)]
    assert statuses == [[75, 75], [0, 0]]
    assert programs.weights(folder) == whole(tmp_path, name)
