"""Packed arrays: several points of a sweep side by side in one task, and what is left of them runs again."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from support import jobs
from support.cluster import SLURMS
from support.processes import gone
from support.story import AnyCluster, finish

PROGRAM = """
import os, pathlib, signal, sys, time

point = int(os.environ["JOBGEN_TASK"])
run = pathlib.Path(os.environ["JOBGEN_RUN_DIR"])
if os.environ.get("RANK", "0") == "0":
    seen = [os.environ.get("CUDA_VISIBLE_DEVICES", "-"), ",".join(map(str, sorted(os.sched_getaffinity(0))))]
    (run / "seen").write_text(" ".join([os.uname().nodename.partition(".")[0], *seen, *sys.argv[1:]]))
    with open("begun", "a") as file:
        file.write(f"{point}\\n")
act = pathlib.Path("act").read_text().split()
if str(point) in act[0].split(","):
    sys.exit(3)
if len(act) > 1 and not (run / "saved").exists():
    signal.signal(signal.SIGUSR1, lambda *_: ((run / "saved").touch(), os._exit(75)))
    print("waiting", flush=True)
    time.sleep(600 if str(point) in act[1].split(",") else 0)
"""


@pytest.fixture
def cluster(request: pytest.FixtureRequest, name: str) -> AnyCluster:
    found: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    return found


def tasks_of(name: str, array: str, tasks: int) -> list[str]:
    return [array.replace("[]", f"[{n}]") if "[]" in array else f"{array}_{n}" for n in range(tasks)]


def script(cluster: AnyCluster, folder: Path, act: str, *options: object) -> str:
    folder.chmod(0o777)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "act").write_text(act)
    words = ("--no-preflight", "--venv", sys.prefix, *options)
    done = jobs.jobgen(*cluster.words, *words, "--", "train.py", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


CASES = [
    *((slurm, "torchrun", ("--gpus-per-node", 4, "--cpus-per-node", 4)) for slurm in SLURMS),
    ("slurm", "srun", ("--gpus-per-node", 4, "--cpus-per-node", 4)),
    ("slurm", "mpirun", ("--nodes", 2, "--gpus-per-node", 4, "--cpus-per-node", 4)),
    ("openpbs", "torchrun", ("--accelerator", "cpu", "--ranks-per-node", 4, "--cpus-per-rank", 1)),
    ("torque", "mpirun", ("--accelerator", "cpu", "--ranks-per-node", 4, "--cpus-per-rank", 1)),
]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("name", "launcher", "sizes"), CASES)
def test_points_side_by_side(
    cluster: AnyCluster, name: str, launcher: str, sizes: tuple[object, ...]
) -> None:
    folder = cluster.folder("pack")
    text = script(cluster, folder, "2", "--array", "0-5", "--pack", 4, "--launcher", launcher, *sizes)
    array = cluster.submit(text, folder)
    ended = [finish(cluster, task) for task in tasks_of(name, array, 2)]
    assert [task.exit_code for task in ended] == [3, 0], "\n".join(task.output for task in ended)
    assert "3 of 4 points have finished, 1 failed: 2" in ended[0].output
    [top] = (folder / "runs").iterdir()
    seen = [(top / f"task-{point}" / "seen").read_text().split() for point in range(6)]
    if "--gpus-per-node" in sizes:
        each = 4 * 1 if "--nodes" not in sizes else 2
        own = ["0", "1", "2", "3"] if each == 4 else ["0,1", "2,3"] * 2
        assert [devices for _, devices, *_ in seen] == (own + own)[:6]
    assert not gone(folder, 30)
