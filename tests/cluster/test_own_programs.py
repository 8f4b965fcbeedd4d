"""The programs of docs/own-programs.md in jobs of two nodes: asked to leave, queued again, and at the end with the
weights of a run that was never stopped."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import ROOT, jobs, programs, warm
from support.cluster import Cluster, start_now
from support.require import need_package
from support.story import AnyCluster

from jobgen.runs import node_files

pytestmark = [pytest.mark.xdist_group("own-programs"), pytest.mark.usefixtures("warm_python")]
TWO = ("--nodes", "2", "--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1")


def submit(cluster: AnyCluster, launcher: str, folder: Path, program: Path) -> str:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    more = ("--no-preflight", "--requeue", "2", "--walltime", "15m")
    env = jobs.env_options({"PATH": cluster.env["PATH"], "PYTHONPATH": paths})
    script = jobs.render(*cluster.words, *TWO, "--launcher", launcher, *more, *env, program=[program.name])
    return cluster.submit(script, folder)


def whole(folder: Path, name: str) -> bytes:
    """The weights of two ranks on this machine that are not stopped."""
    program = programs.write(folder, name)
    env = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "JOBGEN_RUN_DIR": str(folder)}
    env |= {"HOME": str(folder), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    status, out, err = warm.run([str(program)], env, folder, 2)
    assert status == 0, out + err
    return programs.weights(folder)


@dataclass
class Submitted:
    cluster: AnyCluster
    folder: Path
    id: str

    def has_saved(self) -> bool:
        return any(programs.saved_step(run) >= 20 for run in self.folder.glob("runs/*"))

    def has_ended_twice(self) -> bool:
        return any(" ended " in events.read_text() for events in self.folder.glob("runs/*/attempt-2/events"))

    def ask_to_leave(self) -> None:
        with (jobs.run_dir(self.folder / "runs") / "attempt-1" / "control").open("a") as control:
            control.write("save test\n")

    def statuses(self) -> list[list[int | None]]:
        run = jobs.run_dir(self.folder / "runs")
        return [[rank.status for rank in node_files.ranks(run / f"attempt-{number}")] for number in (1, 2)]


def each(submitted: Iterable[Submitted], condition: Callable[[Submitted], bool]) -> Iterator[Submitted]:
    """Give each job when the condition holds for it; an attempt of Slurm is saved the pause before it."""
    limit = time.monotonic() + 500
    waiting = list(submitted)
    while waiting:
        for job in list(waiting):
            if condition(job):
                waiting.remove(job)
                yield job
                continue
            assert time.monotonic() < limit, job.cluster.wait(job.id, 1)
            if isinstance(job.cluster, Cluster) and job.cluster.facts(job.id)["Reason"] == "BeginTime":
                start_now(job.cluster, job.id)
        time.sleep(0.2)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """The weights of a program that was never stopped; each runs once."""
    return functools.cache(lambda name: whole(tmp_path_factory.mktemp("whole"), name))


@pytest.mark.parametrize("scheduler", ["slurm", "openpbs"])
@pytest.mark.parametrize("name", programs.NEEDS)
def test_stopped_and_queued_again_it_ends_with_the_same_weights(
    request: pytest.FixtureRequest, whole_run: Callable[[str], bytes], name: str, scheduler: str
) -> None:
    need_package("torch", "mpi4py", *programs.NEEDS[name])
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    launchers = {"slurm": ("torchrun", *(["srun"] if name == "plain" else [])), "openpbs": ("mpirun",)}
    submitted = []
    for launcher in launchers[scheduler]:
        folder = cluster.folder(f"{name}-{launcher}")
        job = submit(cluster, launcher, folder, programs.write(folder, name))
        submitted.append(Submitted(cluster, folder, job))
    for job in each(submitted, Submitted.has_saved):
        job.ask_to_leave()
    for job in each(submitted, Submitted.has_ended_twice):
        assert job.statuses() == [[75, 75], [0, 0]]
        assert programs.weights(job.folder) == whole_run(name)
