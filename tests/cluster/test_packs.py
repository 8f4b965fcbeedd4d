"""Packed arrays: several points of a sweep side by side in one task, and what is left of them runs again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from support import boxes, jobs
from support.cluster import SLURMS
from support.packs import begun, jobgen, state, tasks_of
from support.processes import gone
from support.story import AnyCluster, finish, path_for
from support.waiting import wait_for

PROGRAM = """
import os, pathlib, signal, sys, time

point = int(os.environ["JOBGEN_TASK"])
run = pathlib.Path(os.environ["JOBGEN_RUN_DIR"])
first = os.environ.get("RANK", "0") == "0"
if first:
    seen = [os.environ.get("CUDA_VISIBLE_DEVICES", "-"), ",".join(map(str, sorted(os.sched_getaffinity(0))))]
    (run / "seen").write_text(" ".join([os.uname().nodename.partition(".")[0], *seen, *sys.argv[1:]]))
    with open("begun", "a") as file:
        file.write(f"{point}\\n")
act = pathlib.Path("act").read_text().split()
if first and str(point) in act[0].split(","):
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


def script(cluster: AnyCluster, folder: Path, act: str, *options: object) -> str:
    folder.chmod(0o777)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "act").write_text(act)
    (folder / "path.sh").write_text(f"export PATH={path_for('torchrun', folder)}:$PATH\n")
    words = ("--no-preflight", "--source", folder / "path.sh", *options)
    done = jobs.jobgen(*cluster.words, *words, "--", "train.py", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


CASES = [
    *((slurm, "torchrun", ("--gpus-per-node", 4, "--cpus-per-node", 4)) for slurm in SLURMS),
    ("slurm", "srun", ("--gpus-per-node", 4, "--cpus-per-node", 4)),
    ("slurm", "mpirun", ("--nodes", 2, "--gpus-per-node", 4, "--cpus-per-node", 4)),
    ("slurm", "srun", ("--nodes", 2, "--gpus-per-node", 4, "--cpus-per-node", 4), 2),
    ("openpbs", "torchrun", ("--accelerator", "cpu", "--ranks-per-node", 4, "--cpus-per-rank", 1)),
    ("torque", "mpirun", ("--accelerator", "cpu", "--ranks-per-node", 4, "--cpus-per-rank", 1)),
]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("name", "launcher", "sizes", "size"), [(*case, 4)[:4] for case in CASES])
def test_points_side_by_side(
    cluster: AnyCluster, name: str, launcher: str, sizes: tuple[object, ...], size: int
) -> None:
    folder = cluster.folder("pack")
    text = script(cluster, folder, "2", "--array", "0-5", "--pack", size, "--launcher", launcher, *sizes)
    array = cluster.submit(text, folder)
    ended = [finish(cluster, task) for task in tasks_of(array, -(-6 // size))]
    failed = ended[2 // size]
    statuses = {task.exit_code for task in ended if task is not failed}
    assert (failed.exit_code, statuses) == (3, {0}), "\n".join(task.output for task in ended)
    assert f"{size - 1} of {size} points have finished, 1 failed: 2" in failed.output
    [top] = (folder / "runs").iterdir()
    seen = [(top / f"task-{point}" / "seen").read_text().split() for point in range(6)]
    if "--gpus-per-node" in sizes:
        each = {4: ["0,1", "2,3"] * 2, 2: ["0,1,2,3"] * 2}[size]
        own = each if "--nodes" in sizes else ["0", "1", "2", "3"]
        assert [devices for _, devices, *_ in seen] == (own * 3)[:6]
    assert (seen[0][0] != seen[size // 2][0]) == ("--nodes" in sizes)
    assert not gone(folder, 30)


SIZES = ("--accelerator", "cpu", "--cpus-per-node", 4, "--launcher", "none", "--venv", sys.prefix)
LIMIT = ("--walltime", "2m", "--signal", "USR1@30")
AGAIN = [
    *((slurm, 40, 4) for slurm in SLURMS),
    ("slurm", 6, None),
    ("openpbs", 8, 4),
    ("openpbs", 6, None),
    ("torque", 8, 4),
]


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize(("name", "points", "size"), AGAIN)
def test_what_is_not_finished_runs_again(
    cluster: AnyCluster, name: str, points: int, size: int | None
) -> None:
    """Some points of a sweep fail, and the wall time ends others, which save."""
    folder = cluster.folder("sweep")
    folder.chmod(0o777)
    (folder / "train.py").write_text(PROGRAM)
    failed, saved = (1, 4), (3, 5)
    (folder / "act").write_text(" ".join(",".join(map(str, some)) for some in (failed, saved)))
    pack = ("--pack", size) if size else ()
    values = f"sweep.lr={[number / 10 for number in range(points // 2)]}"
    words = (*SIZES, *LIMIT, *pack, "--set", values, "--set", "sweep.seed=[1, 2]", "--name", "exp")
    array = jobgen(cluster, folder, "submit", *cluster.words, *words, "--", "train.py").strip()
    for task in tasks_of(array, -(-points // (size or 1))):
        finish(cluster, task)
    assert begun(folder) == Counter(range(points))
    [run] = (path.name for path in (folder / "runs").iterdir())
    assert state(cluster, folder, run)["tasks"] == {
        "finished": points - 4,
        "failed": 2,
        "resumable": 2,
    }
    assert all((folder / f"runs/{run}/task-{point}/saved").exists() for point in saved)
    assert not gone(folder, 30)
    (folder / "act").write_text("none 0")
    array = jobgen(cluster, folder, "submit", "--again", run).strip()
    [later] = {path.name for path in (folder / "runs").iterdir()} - {run}
    indices = sorted((*failed, *saved))
    tasks = [array.replace("[]", f"[{n}]") if "[]" in array else f"{array}_{n}" for n in indices]
    if size or name == "openpbs":
        tasks = tasks_of(array, -(-4 // (size or 1)))
    for task in tasks:
        assert finish(cluster, task).ok
    assert begun(folder) == Counter([*range(points), *indices])
    assert state(cluster, folder, later)["tasks"] == {"finished": 4}
    assert state(cluster, folder, run)["tasks"] == {"finished": points}
    assert (folder / f"runs/{later}/task-3/attempt-2").is_dir()
    assert not gone(folder, 30)


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("name", ["slurm"])
def test_a_requeue_goes_on_with_unfinished_points(cluster: AnyCluster, name: str) -> None:
    folder = cluster.folder("requeue")
    words = ("--array", "0-3", "--pack", 4, *SIZES[:-2], "--requeue", 1, *LIMIT)
    array = cluster.submit(script(cluster, folder, "1 2", *words), folder)
    task = finish(cluster, f"{array}_0")
    assert task.exit_code == 3, task.output
    assert begun(folder) == Counter((0, 1, 2, 3, 2))
    assert "3 of 4 points have finished, 1 failed: 1" in task.output
    assert not gone(folder, 30)


@pytest.mark.usefixtures("warm_python")
@pytest.mark.parametrize("name", ["slurm", "torque"])
def test_one_point_is_cancelled_and_the_others_go_on(cluster: AnyCluster, name: str) -> None:
    folder = cluster.folder("cancel")
    folder.chmod(0o777)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "act").write_text("none 0,1,2,3")
    words = (*SIZES, "--walltime", "10m", "--signal", "USR1", "--array", "0-3", "--pack", 4, "--name", "exp")
    array = jobgen(cluster, folder, "submit", *cluster.words, *words, "--", "train.py").strip()
    wait_for(lambda: (folder / "begun").exists() and begun(folder) == Counter(range(4)), 120)
    [run] = (path.name for path in (folder / "runs").iterdir())
    wait_for(lambda: state(cluster, folder, run)["tasks"] == {"running": 4}, 60)
    top = folder / "runs" / run
    assert "waiting" in jobgen(cluster, folder, "logs", f"{run}/task-2")
    jobgen(cluster, folder, "cancel", f"{run}/task-1")
    wait_for(lambda: " ended 75" in (top / "task-1/attempt-1/events").read_text(), 60)
    assert sorted(path.parent.name for path in top.glob("task-*/saved")) == ["task-1"]
    assert state(cluster, folder, f"{run}/task-2")["state"] == "running"
    jobgen(cluster, folder, "cancel", run)
    [task] = tasks_of(array, 1)
    done = finish(cluster, task)
    assert done.exit_code == 75, done.output
    assert "0 of 4 points have finished, 4 can go on: 0 1 2 3" in done.output
    assert len(list(top.glob("task-*/saved"))) == 4
    assert not gone(folder, 30)


@pytest.mark.parametrize("name", ["slurm"])
def test_points_in_containers(cluster: AnyCluster, name: str) -> None:
    folder = cluster.folder("box")
    image, path = boxes.image(folder), boxes.stand_ins(folder / "bin", "apptainer")
    (folder / "path.sh").write_text(f"export PATH={path}:$PATH\n")
    binds = [word for place in boxes.BINDS for word in ("--bind", place)]
    options = ("--array", "0-3", "--pack", 4, "--gpus-per-node", 4, "--launcher", "srun", "--no-preflight")
    box = ("--container", "apptainer", "--image", image, *binds, "--source", folder / "path.sh")
    code = 'echo "$JOBGEN_TASK $CUDA_VISIBLE_DEVICES" > "$JOBGEN_RUN_DIR/seen"'
    text = jobs.render(*cluster.words, *options, *box, program=["bash", "-c", code])
    [task] = tasks_of(cluster.submit(text, folder), 1)
    done = finish(cluster, task)
    assert done.ok, done.output
    seen = [(path / "seen").read_text() for path in sorted(folder.glob("runs/*/task-*"))]
    assert seen == [f"{point} {point}\n" for point in range(4)]
    assert not gone(folder, 30)
