"""Arrays, sweeps and dependencies on the test clusters: each task in its place, told what is its own."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster, Job, start_now
from support.require import need_package
from support.story import AnyCluster
from support.waiting import wait_for

RANKS = (
    "--accelerator",
    "cpu",
    "--cpus-per-rank",
    "1",
    "--launcher",
    "mpirun",
    "--no-preflight",
    "--venv",
    sys.prefix,
)
ONE = ("--ranks-per-node", "2", *RANKS)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, name: str) -> AnyCluster:
    found: AnyCluster = request.getfixturevalue(f"{name}_cluster")
    return found


def task_id(array: str, index: int) -> str:
    return array.replace("[]", f"[{index}]") if "[]" in array else f"{array}_{index}"


def ended(cluster: AnyCluster, array: str, indices: Sequence[int]) -> list[Job]:
    """The tasks of an array, when they have ended."""
    return [cluster.wait(task_id(array, index)) for index in indices]


# A program that leaves its environment in its run directory, and one that needs a second attempt.
RECORD = 'env -0 > "$JOBGEN_RUN_DIR/seen-$RANK"'
TWICE = f"{RECORD}; ((JOBGEN_ATTEMPT > 1)) || exit 75"


def environment(directory: Path) -> dict[str, str]:
    pairs = (directory / "seen-0").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


@pytest.mark.parametrize(
    ("name", "option", "indices"),
    [
        ("slurm", "1,3,7%2", (1, 3, 7)),
        ("slurm", "0-2", (0, 1, 2)),
        ("openpbs", "2-6:2%2", (2, 4, 6)),
        ("torque", "1,3,7%2", (1, 3, 7)),
    ],
)
def test_every_task_of_an_array_is_a_job_of_its_own(
    cluster: AnyCluster, name: str, option: str, indices: Sequence[int]
) -> None:
    folder = cluster.folder("array")
    words = ("--name", "many", "--array", option)
    script = jobs.render(*cluster.words, *ONE, *words, program=["bash", "-c", RECORD])
    array = cluster.submit(script, folder)
    tasks = ended(cluster, array, indices)
    assert all(task.ok for task in tasks), "\n".join(task.output for task in tasks)
    [top] = (folder / "runs").iterdir()
    assert top.name == f"many-{array.replace('[]', '')}"
    assert {path.name for path in top.iterdir()} == {
        "job.sh",
        "job-id",
        "submitted-from",
        *(f"task-{index}" for index in indices),
    }
    assert (top / "submitted-from").read_text() == f"{folder}\n"
    assert (top / "job.sh").read_text() == script
    said = {index: environment(top / f"task-{index}") for index in indices}
    assert {index: one["JOBGEN_TASK"] for index, one in said.items()} == {i: str(i) for i in indices}
    assert all(one["JOBGEN_RUN_DIR"] == f"{top}/task-{index}" for index, one in said.items())
    ports = [one["MASTER_PORT"] for one in said.values()]
    assert len(set(ports)) == len(ports)
    for index, task in zip(indices, tasks, strict=True):
        assert task.output_path.parent == folder
        assert f"job {task_id(array, index)} finished" in task.output
        assert f"output in {task.output_path}; files in {top}/task-{index}" in task.output


@pytest.mark.parametrize(
    ("name", "own"), [("slurm", "--array=4"), ("openpbs", "-J 4-5:2"), ("torque", "-t 4")]
)
def test_a_task_goes_on_by_hand_where_it_was(cluster: AnyCluster, name: str, own: str) -> None:
    """The command that the message names submits this task alone, and it goes on in its directory."""
    folder = cluster.folder("by-hand")
    script = jobs.render(*cluster.words, *ONE, "--array", "2-6:2", program=["bash", "-c", TWICE])
    tasks = ended(cluster, cluster.submit(script, folder), (2, 4, 6))
    assert {task.exit_code for task in tasks} == {75}
    [command] = re.findall(r"to go on: (.*)", tasks[1].output)
    assert f"{own} " in command
    [top] = (folder / "runs").iterdir()
    printed = cluster.exec("head", ["bash", "-c", command], cwd=folder).stdout
    [task] = ended(cluster, re.findall(r"\d\S*", printed)[0], [4])
    assert task.ok, task.output
    assert [path.name for path in (folder / "runs").iterdir()] == [top.name]
    attempts = {n: len(list((top / f"task-{n}").glob("attempt-*"))) for n in (2, 4, 6)}
    assert attempts == {2: 1, 4: 2, 6: 1}
    assert environment(top / "task-4")["JOBGEN_ATTEMPT"] == "2"


def test_slurm_runs_one_task_again(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = jobs.render("slurm", *ONE, "--array", "0-1", "--requeue", "1", program=["bash", "-c", TWICE])
    array = slurm_cluster.submit(script, tmp_path)
    for index in (0, 1):
        task = f"{array}_{index}"
        wait_for(lambda task=task: "Restarts=1" in shown(slurm_cluster, task), 120)  # type: ignore[misc]
        start_now(slurm_cluster, task)
    tasks = ended(slurm_cluster, array, (0, 1))
    assert all(task.ok for task in tasks), "\n".join(task.output for task in tasks)
    [top] = (tmp_path / "runs").iterdir()
    for index in (0, 1):
        assert {path.name for path in (top / f"task-{index}").glob("attempt-*")} == {"attempt-1", "attempt-2"}


def shown(cluster: Cluster, job: str) -> str:
    return cluster.exec("head", ["scontrol", "show", "job", job]).stdout


@pytest.mark.parametrize(
    ("name", "hold", "release", "waiting"),
    [
        ("slurm", "--hold", ["scontrol", "release"], {"JobState": "PENDING", "Reason": "Dependency"}),
        ("openpbs", "-h", ["qrls"], {"job_state": "H"}),
        ("torque", "-h", ["qrls"], {"job_state": "H"}),
    ],
)
def test_a_job_waits_for_others(
    cluster: AnyCluster, name: str, hold: str, release: list[str], waiting: dict[str, str]
) -> None:
    folder = cluster.folder("waits")
    first = cluster.submit("#!/bin/bash\nexit 1\n", folder, hold)
    other = cluster.submit("#!/bin/bash\nexit 0\n", folder, hold)
    script = jobs.render(
        *(*cluster.words, *ONE, "--after", f"afterany:{first}", "--after", other),
        *("--after", f"afternotok:{first}"),
        program=["true"],
    )
    job = cluster.submit(script, folder)
    wait_for(lambda: cluster.facts(job).items() >= waiting.items(), 120)
    for one in (first, other):
        cluster.exec("head", [*release, one])
    assert cluster.wait(job).ok


def test_a_sweep_trains_each_of_its_points(slurm_cluster: Cluster, tmp_path: Path) -> None:
    need_package("torch", "sklearn")
    (tmp_path / "jobgen.toml").write_text(
        '[sweep]\nmode = "zip"\nlr = [0.001, 0.000001]\nbatch_size = [32, 64]\n'
        '[train]\ntask = "digits"\nengine = "ddp"\nepochs = 1\nlog_every = 5\nlr = 9\n'
    )
    one = ("--ranks-per-node", "1", *RANKS)
    script = jobs.render("slurm", "--job", tmp_path / "jobgen.toml", *one, "--array", "%2")
    points = [(1e-3, 32), (1e-6, 64)]
    tasks = ended(slurm_cluster, slurm_cluster.submit(script, tmp_path), range(len(points)))
    assert all(task.ok for task in tasks), [task.output for task in tasks]
    [top] = (tmp_path / "runs").iterdir()
    for index, (lr, batch) in enumerate(points):
        run = top / f"task-{index}"
        assert json.loads((run / "sweep.json").read_text()) == {"lr": lr, "batch_size": batch}
        assert jobs.status_of(run)["state"] == "finished"
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        assert any(step.get("lr") == pytest.approx(lr) for step in steps)
    accuracies = {lr: jobs.status_of(top / f"task-{i}")["accuracy"] for i, (lr, _) in enumerate(points)}
    assert accuracies[1e-3] > accuracies[1e-6]


@pytest.mark.parametrize(("name", "mode"), [("slurm", "product"), ("openpbs", "zip"), ("torque", "zip")])
def test_each_task_of_a_sweep_has_its_values(cluster: AnyCluster, name: str, mode: str) -> None:
    folder = cluster.folder("sweep")
    values = {"lr": [1e-3, 1e-6], "batch_size": [32, 64]}
    points = [*(itertools.product if mode == "product" else zip)(*values.values())]
    sets = [f"sweep.mode={mode}", *(f"sweep.{key}={value}" for key, value in values.items())]
    script = jobs.render(
        *(*cluster.words, *ONE, "--array", "%2", *(word for one in sets for word in ("--set", one))),
        program=["bash", "-c", RECORD],
    )
    tasks = ended(cluster, cluster.submit(script, folder), range(len(points)))
    assert all(task.ok for task in tasks), [task.output for task in tasks]
    [top] = (folder / "runs").iterdir()
    for index, point in enumerate(points):
        run = top / f"task-{index}"
        assert json.loads((run / "sweep.json").read_text()) == dict(zip(values, point, strict=True))
        said = environment(run)
        assert tuple(float(said[f"JOBGEN_SWEEP_{key}"]) for key in values) == point


def test_ten_thousand_points_are_one_array(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """Submitted at once; two of its tasks are let go, and take the values of their places."""
    sweep = [f"sweep.{key}={list(range(100))}" for key in ("first", "second")]
    script = jobs.render(
        *("slurm", *ONE, "--array", "%2", *(word for one in sweep for word in ("--set", one))),
        program=["bash", "-c", RECORD],
    )
    array = slurm_cluster.submit(script, tmp_path, "--hold")
    assert "ArrayTaskId=0-9999%2" in shown(slurm_cluster, array)
    for index in (1234, 9999):
        slurm_cluster.exec("head", ["scontrol", "release", f"{array}_{index}"])
    tasks = ended(slurm_cluster, array, (1234, 9999))
    slurm_cluster.exec("head", ["scancel", array])
    assert all(task.ok for task in tasks), "\n".join(task.output for task in tasks)
    [top] = (tmp_path / "runs").iterdir()
    assert json.loads((top / "task-1234/sweep.json").read_text()) == {"first": 12, "second": 34}
    assert environment(top / "task-9999")["JOBGEN_SWEEP_second"] == "99"


def test_slurm_heard_all_that_it_was_told(slurm_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    options = ("--comment", "the last (one), $HOME & co", "--begin", "+1h", "--priority", "-7", "--exclusive")
    log = ("--log", "logs/%x-%j.out", "--mail-on", "end,fail", "--mail", "me@example.org")
    script = jobs.render("slurm", *ONE, *options, *log, program=["bash", "-c", RECORD])
    job = slurm_cluster.submit(script, tmp_path)
    wait_for(lambda: "Reason=BeginTime" in shown(slurm_cluster, job), 120)
    facts = shown(slurm_cluster, job)
    for fact in ("Comment=the last (one), $HOME & co", "Nice=7", "OverSubscribe=NO"):
        assert fact in facts, facts
    begin, now = (
        float(slurm_cluster.exec("head", ["date", "-d", text, "+%s"]).stdout)
        for text in (re.findall(r"StartTime=(\S+)", facts)[0], "now")
    )
    assert 3500 < begin - now < 3700
    start_now(slurm_cluster, job)
    done = slurm_cluster.wait(job)
    assert done.ok, done.output
    assert done.output_path == tmp_path / f"logs/jobgen-{job}.out"
    assert f"output in {done.output_path};" in done.output
    whole = shown(slurm_cluster, job)
    assert "NumCPUs=8 " in whole  # of the node, not the two of the ranks
