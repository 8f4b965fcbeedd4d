"""Arrays, sweeps and dependencies on the test cluster: each task in its place, told what is its own."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster, Job, start_now
from support.require import need_package

ONE = ("--ranks-per-node", "2", "--accelerator", "cpu", "--cpus-per-rank", "1", "--launcher", "torchrun")


def scheduler(request: pytest.FixtureRequest, name: str) -> Cluster:
    cluster: Cluster = request.getfixturevalue(f"{name}_cluster")
    return cluster


def submit(cluster: Cluster, directory: Path, script: str | Path, *args: str) -> str:
    return (cluster.qsub if cluster.mode == "pbs" else cluster.sbatch)(script, directory, *args)


def ended(cluster: Cluster, array: str, indices: Sequence[int]) -> list[Job]:
    """The tasks of an array, when they have ended."""
    return [cluster.wait(f"{array}_{index}") for index in indices]


# A program that leaves its environment in its run directory, and one that needs a second attempt.
RECORD = 'env -0 > "$JOBGEN_RUN_DIR/seen-$RANK"'
TWICE = f"{RECORD}; ((JOBGEN_ATTEMPT > 1)) || exit 75"


def environment(directory: Path) -> dict[str, str]:
    pairs = (directory / "seen-0").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


@pytest.mark.parametrize(
    ("name", "option", "indices"),
    [("slurm", "1,3,7%2", (1, 3, 7)), ("slurm", "0-2", (0, 1, 2)), ("pbs", "2-6:2%2", (2, 4, 6))],
)
def test_every_task_of_an_array_is_a_job_of_its_own(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, option: str, indices: Sequence[int]
) -> None:
    cluster = scheduler(request, name)
    script = jobs.render(name, *ONE, "--name", "many", "--array", option, program=["bash", "-c", RECORD])
    array = submit(cluster, tmp_path, script)
    tasks = ended(cluster, array, indices)
    assert all(task.ok for task in tasks), tasks
    [top] = (tmp_path / "runs").iterdir()
    assert re.fullmatch(rf"many-{array}(\.head)?", top.name)
    assert {path.name for path in top.iterdir()} == {
        "job.sh",
        "job-id",
        "submitted-from",
        *(f"task-{index}" for index in indices),
    }
    assert (top / "submitted-from").read_text() == f"{tmp_path}\n"
    assert (top / "job.sh").read_text() == script
    said = {index: environment(top / f"task-{index}") for index in indices}
    assert {index: one["JOBGEN_TASK"] for index, one in said.items()} == {i: str(i) for i in indices}
    assert all(one["JOBGEN_RUN_DIR"] == f"{top}/task-{index}" for index, one in said.items())
    ports = [one["MASTER_PORT"] for one in said.values()]
    assert len(set(ports)) == len(ports)
    if name == "slurm":
        for index, task in zip(indices, tasks, strict=True):
            assert task.output_path == tmp_path / f"many-{array}_{index}.log"
            assert f"job {array}_{index} finished" in task.output
            assert f"output in {task.output_path}; files in {top}/task-{index}" in task.output


@pytest.mark.parametrize("name", ["slurm", "pbs"])
def test_a_task_goes_on_by_hand_where_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    """The command that the message names submits this task alone, and it goes on in its directory."""
    cluster = scheduler(request, name)
    script = jobs.render(name, *ONE, "--array", "2-6:2", program=["bash", "-c", TWICE])
    tasks = ended(cluster, submit(cluster, tmp_path, script), (2, 4, 6))
    assert {task.exit_code for task in tasks} == {75}
    own = "--array=4 " if name == "slurm" else "-J 4-5:2 "  # all tasks of Slurm's qsub share one output
    [command] = {line for line in re.findall(r"to go on: (.*)", tasks[1].output) if own in line}
    [top] = (tmp_path / "runs").iterdir()
    printed = cluster.exec("head", ["bash", "-c", command]).stdout
    [array] = re.findall(r"\d+", printed)[:1]
    [task] = ended(cluster, array, [4])
    assert task.ok, task.output
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [top.name]
    attempts = {n: len(list((top / f"task-{n}").glob("attempt-*"))) for n in (2, 4, 6)}
    assert attempts == {2: 1, 4: 2, 6: 1}
    assert environment(top / "task-4")["JOBGEN_ATTEMPT"] == "2"


def test_slurm_runs_one_task_again(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = jobs.render("slurm", *ONE, "--array", "0-1", "--requeue", "1", program=["bash", "-c", TWICE])
    array = submit(slurm_cluster, tmp_path, script)
    for index in (0, 1):
        task = f"{array}_{index}"
        wait_for(lambda task=task: "Restarts=1" in shown(slurm_cluster, task))  # type: ignore[misc]
        start_now(slurm_cluster, task)
    tasks = ended(slurm_cluster, array, (0, 1))
    assert all(task.ok for task in tasks), tasks
    [top] = (tmp_path / "runs").iterdir()
    for index in (0, 1):
        assert {path.name for path in (top / f"task-{index}").glob("attempt-*")} == {"attempt-1", "attempt-2"}


def shown(cluster: Cluster, job: str) -> str:
    return cluster.exec("head", ["scontrol", "show", "job", job]).stdout


@pytest.mark.parametrize("name", ["slurm", "pbs"])
def test_a_job_waits_for_others(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    cluster = scheduler(request, name)
    first = submit(cluster, tmp_path, "#!/bin/bash\nexit 1\n", "-h" if name == "pbs" else "--hold")
    other = submit(cluster, tmp_path, "#!/bin/bash\nexit 0\n")
    script = jobs.render(
        *(name, *ONE, "--after", f"afterany:{first}", "--after", other, "--after", f"afternotok:{first}"),
        program=["true"],
    )
    job = submit(cluster, tmp_path, script)
    wait_for(lambda: "JobState=PENDING Reason=Dependency" in shown(cluster, job))
    assert re.search(rf"Dependency=.*afterany:{first}", shown(cluster, job))
    cluster.exec("head", ["scontrol", "release", first])
    assert cluster.wait(job).ok


@pytest.mark.parametrize(("name", "mode"), [("slurm", "product"), ("pbs", "zip")])
def test_a_sweep_trains_each_of_its_points(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, mode: str
) -> None:
    need_package("torch", "sklearn")
    cluster = scheduler(request, name)
    (tmp_path / "jobgen.toml").write_text(
        f'[sweep]\nmode = "{mode}"\nlr = [0.001, 0.000001]\nbatch_size = [32, 64]\n'
        '[train]\ntask = "digits"\nengine = "ddp"\nepochs = 1\nlog_every = 5\nlr = 9\n'
    )
    one = ("--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1", "--launcher", "torchrun")
    script = jobs.render(name, "--job", tmp_path / "jobgen.toml", *one, "--array", "%2")
    points = (
        [(1e-3, 32), (1e-3, 64), (1e-6, 32), (1e-6, 64)] if mode == "product" else [(1e-3, 32), (1e-6, 64)]
    )
    array = submit(cluster, tmp_path, script)
    tasks = ended(cluster, array, range(len(points)))
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


def test_ten_thousand_points_are_one_array(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """Submitted at once; two of its tasks are let go, and take the values of their places."""
    sweep = [f"sweep.{key}={list(range(100))}" for key in ("first", "second")]
    script = jobs.render(
        *("slurm", *ONE, "--array", "%2", *(word for one in sweep for word in ("--set", one))),
        program=["bash", "-c", RECORD],
    )
    array = submit(slurm_cluster, tmp_path, script, "--hold")
    assert "ArrayTaskId=0-9999%2" in shown(slurm_cluster, array)
    for index in (1234, 9999):
        slurm_cluster.exec("head", ["scontrol", "release", f"{array}_{index}"])
    tasks = ended(slurm_cluster, array, (1234, 9999))
    slurm_cluster.exec("head", ["scancel", array])
    assert all(task.ok for task in tasks), tasks
    [top] = (tmp_path / "runs").iterdir()
    assert json.loads((top / "task-1234/sweep.json").read_text()) == {"first": 12, "second": 34}
    assert environment(top / "task-9999")["JOBGEN_SWEEP_second"] == "99"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_slurm_heard_all_that_it_was_told(slurm_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    options = ("--comment", "the last (one), $HOME & co", "--begin", "+1h", "--priority", "-7", "--exclusive")
    log = ("--log", "logs/%x-%j.out", "--mail-on", "end,fail", "--mail", "me@example.org")
    script = jobs.render("slurm", *ONE, *options, *log, program=["bash", "-c", RECORD])
    job = submit(slurm_cluster, tmp_path, script)
    wait_for(lambda: "Reason=BeginTime" in shown(slurm_cluster, job))
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
